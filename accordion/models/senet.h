// The squeeze-and-excitation network (Hu et al. 2018) of the CIFAR-10 experiments.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "accordion/data/input_shape.h"
#include "accordion/models/width.h"

namespace accordion {

class Network;

// Pre-activation blocks [2,2,2,2] of widths 64 to 512; 11,260,354 parameters on CIFAR-10. The experiments on
// CIFAR-100 took another network for it, seresnet18.
struct SeNetOptions : WidthOption {
  static constexpr std::string_view kName = "senet";
  static constexpr Usual kUsual = {"cifar10", 16};
  std::string form = "published";
  void fields(auto&& field) {
    WidthOption::fields(field);
    field("form", form,
          "pre-activation; seresnet18; or published, which is the first up to 10 classes, the second above.",
          one_of({"published", "pre-activation", "seresnet18"}));
  }
};

std::shared_ptr<Network> make(const SeNetOptions& options, const ImageShape& input);

}  // namespace accordion
