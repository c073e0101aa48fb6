// The zoo as a table, without torch in sight.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace accordion {

struct ModelDescription {
  std::string name, data;
  std::int64_t parameters;
};

// Every model on the data sets it is meant for.
std::vector<ModelDescription> describe_models();

}  // namespace accordion
