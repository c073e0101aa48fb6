#include "accordion/models/zoo.h"

#include "accordion/base/setting.h"

namespace accordion {
namespace {

template <class Options, class Shape>
constexpr bool kTakes = requires(const Options& options, const Shape& shape) {
  make(options, shape);
};

template <class Options>
std::string_view kind_taken() {
  std::string_view taken;
  for_each_alternative<InputShape>([&]<class Shape>(const Shape&) {
    if (kTakes<Options, Shape>) taken = Shape::kKind;
  });
  return taken;
}

template <class Options, class Shape>
void require_fit(const Options&, const Shape&) {
  if (!kTakes<Options, Shape>)
    throw UsageError("model=" + std::string(Options::kName) + " learns from " +
                     std::string(kind_taken<Options>()) + ", but the data set holds " +
                     std::string(Shape::kKind));
}

}  // namespace

std::vector<std::string> model_names() {
  return setting_names<ModelOptions>();
}

std::vector<std::string> model_names(const InputShape& input) {
  std::vector<std::string> names;
  for_each_alternative<ModelOptions>([&]<class Options>(const Options& options) {
    std::visit(
        [&]<class Shape>(const Shape&) {
          if (kTakes<Options, Shape>) names.emplace_back(options.kName);
        },
        input);
  });
  return names;
}

ModelOptions parse_model(std::string_view setting) {
  const auto options = parse_setting<ModelOptions>("model", setting);
  std::visit(
      [](const auto& model) {
        if constexpr (requires { model.check(); }) model.check();
      },
      options);
  return options;
}

void check_model(const std::string& setting, const InputShape& input) {
  std::visit([](const auto& options, const auto& shape) { require_fit(options, shape); },
             parse_model(setting), input);
}

void check_window(const std::string& setting, int positions) {
  std::visit(
      [&](const auto& options) {
        if constexpr (requires { options.context; })
          if (positions > options.context)
            throw UsageError(std::string(options.kName) + ": windows of bptt=" + std::to_string(positions) +
                             " tokens, expected at most context=" + std::to_string(options.context));
      },
      parse_model(setting));
}

Usual usual_of(const std::string& setting) {
  return std::visit([](const auto& options) { return options.kUsual; }, parse_model(setting));
}

}  // namespace accordion
