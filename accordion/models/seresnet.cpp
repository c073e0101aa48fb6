#include "accordion/models/seresnet.h"

#include "accordion/models/blocks.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

// conv-BN-ReLU-conv-BN-ReLU, each channel weighed by what its mean says of it, plus the input, by a 1x1
// convolution where the shape changes.
class SqueezeBlock final : public nn::Module {
 public:
  SqueezeBlock(int in, int out, int stride)
      : first_(register_module("first", ConvNormRelu(in, out, 3, stride, Bias::kYes))),
        second_(register_module("second", ConvNormRelu(out, out, 3, 1, Bias::kYes))) {
    const int squeezed = std::max(1, out / 16);
    squeeze_ = register_module("squeeze", nn::Linear(out, squeezed));
    excite_ = register_module("excite", nn::Linear(squeezed, out));
    if (stride == 1 && in == out) return;
    shortcut_ = register_module("shortcut",
                                nn::Sequential(conv(in, out, 1, stride, Bias::kYes), nn::BatchNorm2d(out)));
  }

  torch::Tensor forward(torch::Tensor x) {
    const torch::Tensor y = second_(first_(x));
    const torch::Tensor weight = excite_(squeeze_(global_average(y)).relu_()).sigmoid();
    return (y * weight.unsqueeze(2).unsqueeze(3) + (shortcut_ ? shortcut_->forward(x) : x)).relu_();
  }

 private:
  ConvNormRelu first_, second_;
  nn::Linear squeeze_{nullptr}, excite_{nullptr};
  nn::Sequential shortcut_{nullptr};
};

class SeResNet final : public Network {
 public:
  SeResNet(const SeResNet18Options& options, const ImageShape& input) {
    int in = options.scaled(64);
    stem_ = register_module("stem", ConvNormRelu(input.channels, in, 3, 1, Bias::kYes));
    // The last is 516: no slip of ours, the published parameter count has it.
    in = add_stages<SqueezeBlock>(stages_, in, options.scaled({64, 128, 256, 516}), 2);
    register_module("stages", stages_);
    out_ = register_module("out", nn::Linear(in, input.classes));
  }

  torch::Tensor forward(torch::Tensor x) override { return out_(global_average(stages_->forward(stem_(x)))); }

 private:
  ConvNormRelu stem_{nullptr};
  nn::Sequential stages_;
  nn::Linear out_{nullptr};
};

}  // namespace

std::shared_ptr<Network> make(const SeResNet18Options& options, const ImageShape& input) {
  return std::make_shared<SeResNet>(options, input);
}

}  // namespace accordion
