#include "accordion/models/cnn.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

class Cnn final : public Network {
 public:
  explicit Cnn(const InputShape& input)
      : conv1_(nn::Conv2dOptions(input.channels, 32, 3).padding(1)),
        conv2_(nn::Conv2dOptions(32, 64, 3).padding(1)),
        hidden_(64 * (input.height / 4) * (input.width / 4), 64),
        out_(64, input.classes) {
    register_module("conv1", conv1_);
    register_module("conv2", conv2_);
    register_module("hidden", hidden_);
    register_module("out", out_);
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = torch::max_pool2d(conv1_(x).relu_(), 2);
    x = torch::max_pool2d(conv2_(x).relu_(), 2);
    return out_(hidden_(x.flatten(1)).relu_());
  }

 private:
  nn::Conv2d conv1_, conv2_;
  nn::Linear hidden_, out_;
};

}  // namespace

std::shared_ptr<Network> make_cnn(const InputShape& input) {
  return std::make_shared<Cnn>(input);
}

}  // namespace accordion
