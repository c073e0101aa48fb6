#include "accordion/models/cnn.h"

#include "accordion/models/blocks.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

class Cnn final : public Network {
 public:
  Cnn(const CnnOptions& options, const ImageShape& input) {
    require_size(options.kName, input, 4, "it halves them 2 times");
    const int first = options.scaled(32), second = options.scaled(64), hidden = options.scaled(64);
    conv1_ = register_module("conv1", conv(input.channels, first, 3, 1, Bias::kYes));
    conv2_ = register_module("conv2", conv(first, second, 3, 1, Bias::kYes));
    hidden_ = register_module("hidden", nn::Linear(second * (input.height / 4) * (input.width / 4), hidden));
    out_ = register_module("out", nn::Linear(hidden, input.classes));
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = torch::max_pool2d(conv1_(x).relu_(), 2);
    x = torch::max_pool2d(conv2_(x).relu_(), 2);
    return out_(hidden_(x.flatten(1)).relu_());
  }

 private:
  nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  nn::Linear hidden_{nullptr}, out_{nullptr};
};

}  // namespace

std::shared_ptr<Network> make(const CnnOptions& options, const ImageShape& input) {
  return std::make_shared<Cnn>(options, input);
}

}  // namespace accordion
