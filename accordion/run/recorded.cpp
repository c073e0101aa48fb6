#include "accordion/run/recorded.h"

#include "accordion/base/json.h"
#include "accordion/log/run_folder.h"

namespace accordion {
namespace {

constexpr double kMostElements = 1e13;  // Of a tensor; what is counted of it then fits into 64 bits.

// What is wrong in the file is the caller's mistake: it is the wrong file.
void in_config(const auto& read) {
  try {
    read();
  } catch (const Error& error) {
    throw UsageError(std::string(kConfigFile) + ": " + error.what());
  }
}

const Json& member(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key))
    throw Error("no \"" + std::string(key) + "\", expected what accordion train writes");
  return json.at(key);
}

TensorInfo tensor_info(const Json& json) {
  TensorInfo tensor;
  read_value(member(json, "name"), "a tensor's name", tensor.name);
  read_value(member(json, "shape"), "the shape of " + shown(json["name"]), tensor.shape.dims);
  double elements = 1;
  for (const std::int64_t dim : tensor.shape.dims) {
    check_number("the shape of " + tensor.name, "dimension", static_cast<double>(dim),
                 at_least(0).up_to(kMostElements));
    elements *= static_cast<double>(dim);
  }
  check_number("the shape of " + tensor.name, "elements", elements, at_least(0).up_to(kMostElements));
  return tensor;
}

}  // namespace

TrainOptions recorded_options(const Json& config) {
  TrainOptions options;
  in_config([&] {
    from_json(member(config, "options"), options);
    check("options", options);
  });
  return options;
}

int recorded_workers(const Json& config) {
  int workers = 1;
  in_config([&] {
    if (!config.is_object() || !config.contains("workers")) return;
    read_value(config["workers"], "workers", workers);
    check_number("a run", "workers", workers, at_least(1).up_to(1e6));
  });
  return workers;
}

std::optional<std::vector<TensorInfo>> recorded_tensors(const Json& config) {
  if (!config.is_object() || !config.contains("tensors")) return std::nullopt;
  std::vector<TensorInfo> tensors;
  in_config([&] {
    const Json& listed = config["tensors"];
    if (!listed.is_array()) refuse_json("tensors", listed, "a list of objects with name and shape");
    for (const Json& tensor : listed) tensors.push_back(tensor_info(tensor));
  });
  return tensors;
}

}  // namespace accordion
