// VGG's configuration E with batch normalisation (Simonyan and Zisserman 2015) for small images.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "accordion/data/input_shape.h"
#include "accordion/models/width.h"

namespace accordion {

class Network;

// 20,565,834 parameters on CIFAR-10, 39,327,652 on CIFAR-100, nearly half of them in its wider head.
struct Vgg19BnOptions : WidthOption {
  static constexpr std::string_view kName = "vgg19bn";
  static constexpr Usual kUsual = {"cifar10", 32};
  std::string head = "published";
  void fields(auto&& field) {
    WidthOption::fields(field);
    field("head", head,
          "Hidden units: 512; 4096; or published, which is the first up to 10 classes, the second above.",
          one_of({"published", "512", "4096"}));
  }
};

std::shared_ptr<Network> make(const Vgg19BnOptions& options, const ImageShape& input);

}  // namespace accordion
