// Every model by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace accordion {

class Network;

// What a data set asks of a model.
struct InputShape {
  int channels, height, width, classes;
};

std::vector<std::string> model_names();

// Weights come from torch's generator: seed it first. Throws UsageError for an unknown name, or an input the
// model cannot take.
std::shared_ptr<Network> make_model(const std::string& name, const InputShape& input);

}  // namespace accordion
