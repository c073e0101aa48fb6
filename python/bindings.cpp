// accordion._core: the plugin for Python. Everything that may wait for another rank or for a thread lets go of the GIL.
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/jit/python/python_ivalue.h>
#include <torch/extension.h>
#include <torch/version.h>

#include <net/if.h>

#include <memory>
#include <string>
#include <type_traits>

#include "accordion/adapt/controllers.h"
#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/version.h"
#include "accordion/comm/c10d.h"
#include "accordion/exchange/agreement.h"
#include "python/plugin.h"

namespace py = pybind11;

namespace accordion {
namespace {

// A value as the command line would have it, so that mistakes are met with the same words.
std::string text_of(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "true" : "false";
  return py::str(value);
}

PluginOptions parse_options(const py::dict& given) {
  PluginOptions options;
  std::vector<std::string> names;
  for (const std::string& name : field_names(options)) names.push_back(json_key(name));
  for (const auto& [key, value] : given) {
    bool known = false;
    options.fields([&](std::string_view name, auto& field, auto&&...) {
      if (json_key(name) != key.cast<std::string>()) return;
      known = true;
      parse_value("State", name, text_of(value), field);
    });
    if (!known) throw UsageError("State: " + unknown_name("option", key.cast<std::string>(), names));
  }
  options.guard_given = given.contains("guard");
  check("State", options);
  return options;
}

// For signatures and documents: name, default, help, what is allowed.
template <class Options>
py::list describe(Options options) {
  py::list result;
  options.fields([&](std::string_view name, auto& value, std::string_view help, const Allowed& allowed = {}) {
    std::string range = allowed.names.empty() ? allowed.text() : "";
    for (const std::string& one : allowed.names) range += (range.empty() ? "" : ", ") + one;
    result.append(py::make_tuple(json_key(name), value, std::string(help), range));
  });
  return result;
}

py::object to_python(const StateValue& value) {
  return std::visit(
      [](const auto& values) -> py::object {
        using Container = std::decay_t<decltype(values)>;
        if constexpr (std::is_same_v<Container, std::string>) {
          return py::str(values);
        } else {
          using T = typename Container::value_type;
          const auto type = std::is_same_v<T, float>    ? at::kFloat
                            : std::is_same_v<T, double> ? at::kDouble
                                                        : at::kLong;
          at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, type);
          std::copy(values.begin(), values.end(), static_cast<T*>(tensor.data_ptr()));
          return py::cast(tensor);
        }
      },
      value);
}

template <class T>
StateValue values_of(const at::Tensor& tensor) {
  const auto* const first = static_cast<const T*>(tensor.data_ptr());
  return std::vector<T>(first, first + tensor.numel());
}

StateValue state_value(const std::string& name, const py::handle& value) {
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  if (THPVariable_Check(value.ptr())) {
    const at::Tensor tensor = value.cast<at::Tensor>().cpu().contiguous();
    if (tensor.scalar_type() == at::kFloat) return values_of<float>(tensor);
    if (tensor.scalar_type() == at::kDouble) return values_of<double>(tensor);
    if (tensor.scalar_type() == at::kLong) return values_of<std::int64_t>(tensor);
  }
  throw UsageError(name + " is of type " + std::string(py::str(py::type::of(value))) +
                   ", expected what state_dict() gave");
}

State to_state(const py::object& given) {
  if (!py::isinstance<py::dict>(given))
    throw UsageError("a " + std::string(py::str(py::type::of(given))) + ", expected what state_dict() gave");
  State state;
  for (const auto& [name, value] : given.cast<py::dict>()) {
    const std::string key = py::str(name);
    state.emplace(key, state_value(key, value));
  }
  return state;
}

// The bucket's buffer, in a form that PyTorch's own wrapper of Python hooks expects; made here, with the GIL, so that the
// thread which completes the future needs none.
std::shared_ptr<torch::jit::PythonFutureWrapper> post(Plugin& plugin, c10d::GradBucket& bucket) {
  auto future =
      c10::make_intrusive<c10::ivalue::Future>(c10::PyObjectType::get(), devices_of(bucket.getBuffer()));
  c10::IValue result(c10::ivalue::ConcretePyObjectHolder::create(py::cast(bucket.getBuffer())));
  {
    const py::gil_scoped_release without_gil;
    plugin.post(bucket, future, std::move(result));
  }
  return std::make_shared<torch::jit::PythonFutureWrapper>(std::move(future));
}

py::dict describe_traffic(Plugin& plugin) {
  const EpochStats totals = [&] {
    const py::gil_scoped_release release;  // It may wait for the last step's end.
    return plugin.totals();
  }();
  const Traffic& traffic = totals.traffic;
  Engine& engine = plugin.engine();
  std::uint64_t elements = 0;
  for (std::size_t i = 0; i < engine.tensors(); ++i) elements += engine.tensor(i).shape.count();
  const auto ranks = static_cast<std::uint64_t>(plugin.size());
  py::dict result;
  result["steps"] = totals.steps;
  result["dropped_steps"] = totals.dropped_steps;
  result["payload_bytes"] = traffic.payload_bytes;
  result["wire_bytes"] = traffic.wire_bytes;
  result["control_bytes"] = traffic.control_bytes;
  result["sent_bytes"] = plugin.sent_bytes();
  result["plain_bytes"] =
      2 * sizeof(float) * elements * static_cast<std::uint64_t>(totals.steps) * (ranks - 1) / ranks;
  result["paper_floats"] = traffic.paper_floats;
  result["entries"] = traffic.entries;
  result["saturated"] = traffic.saturated;
  return result;
}

py::dict levels(Plugin& plugin) {
  Engine& engine = plugin.engine();
  {
    // At the end of a step, which may be yet to come, a guard changes them.
    const py::gil_scoped_release without_gil;
    engine.settle();
  }
  py::dict result;
  for (std::size_t i = 0; i < engine.tensors(); ++i) {
    const int level = engine.level(i);
    result[py::str(engine.tensor(i).name)] =
        engine.compresses(i) ? codec_text(engine.levels()[static_cast<std::size_t>(level)]) : "none";
  }
  return result;
}

std::vector<std::string> epochs(const Plugin& plugin) {
  std::vector<std::string> lines;
  for (const EpochRecord& record : plugin.epochs()) lines.push_back(to_json(record).dump());
  return lines;
}

py::dict save(Plugin& plugin) {
  State state;
  {
    const py::gil_scoped_release release;  // It may wait for the last step's end.
    plugin.save_state(StateWriter(state));
  }
  py::dict result;
  for (const auto& [name, value] : state) result[py::str(name)] = to_python(value);
  return result;
}

// What one rank alone cannot take is refused by all of them, so it is for the plugin to say.
void load(Plugin& plugin, const py::object& given, const std::string& residuals) {
  State state;
  std::string refused;
  try {
    state = to_state(given);
    if (residuals != "keep" && residuals != "drop")
      throw UsageError("residuals='" + residuals + "', expected 'keep' or 'drop'");
  } catch (const std::exception& error) {
    refused = error.what();
  }
  const py::gil_scoped_release without_gil;
  plugin.load_state(state, residuals == "drop" ? Residuals::kDrop : Residuals::kKeep, refused);
}

void require_interface(const std::string& name) {
  if (!name.empty() && if_nametoindex(name.c_str()) == 0)
    throw UsageError("State: GLOO_SOCKET_IFNAME=" + name + ", expected a network interface of this machine");
}

std::shared_ptr<Plugin> make_plugin(const py::dict& options, const c10::intrusive_ptr<c10d::Store>& store,
                                    int rank, int size, const std::string& prefix,
                                    const std::string& interface, double timeout, PluginModel model,
                                    const std::string& record) {
  const PluginOptions parsed = parse_options(options);
  require_interface(interface);
  const py::gil_scoped_release without_gil;
  Group group = c10d_group({.store = store,
                            .rank = rank,
                            .size = size,
                            .prefix = prefix,
                            .interface = interface,
                            .timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000))});
  // Its threads may want the GIL for what they let go of, so whoever ends them must not hold it.
  return {new Plugin(parsed, std::move(group), std::move(model), record), [](Plugin* plugin) {
            if (!PyGILState_Check()) return delete plugin;
            const py::gil_scoped_release without_gil;
            delete plugin;
          }};
}

}  // namespace
}  // namespace accordion

PYBIND11_MODULE(_core, m) {
  using namespace accordion;
  // UsageError is an Error too: the translator that was registered last is asked first.
  py::register_local_exception_translator([](std::exception_ptr failure) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const UsageError& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const RanksDiffer& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const Error& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
  });

  m.attr("version") = kVersion;
  m.attr("torch_version") = TORCH_VERSION;
  m.def("options", [] { return describe(PluginOptions{}); });
  m.def("codecs", [] {
    py::dict result;
    const auto add = [&](auto options) { result[py::str(std::string(options.kName))] = describe(options); };
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (add(std::variant_alternative_t<i, CodecOptions>{}), ...);
    }
    (std::make_index_sequence<std::variant_size_v<CodecOptions>>());
    return result;
  });
  m.def("controllers", [] {
    py::dict result;
    for (const ControllerKind& kind : controllers()) result[py::str(kind.name)] = kind.help;
    return result;
  });

  py::class_<PluginModel>(m, "Model")
      .def(py::init([](std::string name, std::vector<std::pair<std::string, at::Tensor>> parameters,
                       bool find_unused, bool scaled, bool follows_batch,
                       c10::intrusive_ptr<c10d::ProcessGroup> on_device, double rate) {
             return PluginModel{std::move(name), std::move(parameters), find_unused, scaled,
                                follows_batch,   std::move(on_device),  rate};
           }),
           py::arg("name"), py::arg("parameters"), py::arg("find_unused_parameters"), py::arg("scaled"),
           py::arg("follows_batch"), py::arg("on_device"), py::arg("learning_rate"));

  const auto release = py::call_guard<py::gil_scoped_release>();
  py::class_<Plugin, std::shared_ptr<Plugin>>(m, "Plugin")
      .def(py::init(&make_plugin), py::arg("options"), py::arg("store"), py::arg("rank"), py::arg("size"),
           py::arg("prefix"), py::arg("interface"), py::arg("timeout"), py::arg("model"), py::arg("record"))
      .def_property_readonly("batch", [](Plugin& plugin) { return plugin.engine().batch(); })
      .def_property_readonly("batch_reason", [](Plugin& plugin) { return plugin.engine().batch_reason(); })
      .def("post", &post, py::arg("bucket"))
      .def("set_batch", [](Plugin& plugin, std::int64_t local,
                           std::int64_t all) { plugin.engine().set_batch(local, all); })
      .def("set_scale", [](Plugin& plugin, double scale) { plugin.engine().set_scale(scale); })
      .def("end_step", &Plugin::end_step, release, py::arg("next_rate"), py::arg("last"))
      .def(
          "end_epoch",
          [](Plugin& plugin, double rate, bool last, std::optional<double> train_loss,
             std::optional<double> test_loss, std::optional<double> test_accuracy) {
            plugin.end_epoch(rate, last, {train_loss, test_loss, test_accuracy});
          },
          release, py::arg("next_rate"), py::arg("last"), py::arg("train_loss"), py::arg("test_loss"),
          py::arg("test_accuracy"))
      .def("finish", &Plugin::finish, release, py::arg("status"))
      .def("own_momentum", &Plugin::own_momentum, release)
      .def("levels", &levels)
      .def("traffic", &describe_traffic)
      .def("epochs", &epochs)
      .def("save", &save)
      .def("load", &load, py::arg("state"), py::arg("residuals"));
}
