// Names that a person may mistype: model, codec, data set, option.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace accordion {

// The candidate with the fewest edits from `name`, or empty when none is close enough to be meant.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "a, b, c"
std::string join(const std::vector<std::string>& names);

// `unknown model "resnet81"; did you mean "resnet18"? There are: cnn, resnet18, resnet20`
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& candidates);

}  // namespace accordion
