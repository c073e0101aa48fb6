#include "accordion/models/senet.h"

#include "accordion/models/blocks.h"
#include "accordion/models/seresnet.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

// BN-ReLU-conv-BN-ReLU-conv, each channel weighed by what its mean says of it, plus the input: raw where the
// shape stays, otherwise a 1x1 convolution of the activated input.
class PreActivationBlock final : public nn::Module {
 public:
  PreActivationBlock(int in, int out, int stride)
      : norm1_(register_module("norm1", nn::BatchNorm2d(in))),
        conv1_(register_module("conv1", conv(in, out, 3, stride, Bias::kNo))),
        norm2_(register_module("norm2", nn::BatchNorm2d(out))),
        conv2_(register_module("conv2", conv(out, out, 3, 1, Bias::kNo))) {
    if (stride != 1 || in != out)
      shortcut_ = register_module("shortcut", conv(in, out, 1, stride, Bias::kNo));
    const int squeezed = std::max(1, out / 16);
    squeeze_ = register_module("squeeze", conv(out, squeezed, 1, 1, Bias::kYes));
    excite_ = register_module("excite", conv(squeezed, out, 1, 1, Bias::kYes));
  }

  torch::Tensor forward(torch::Tensor x) {
    const torch::Tensor activated = norm1_(x).relu_();
    const torch::Tensor y = conv2_(norm2_(conv1_(activated)).relu_());
    const torch::Tensor weight = excite_(squeeze_(y.mean({2, 3}, /*keepdim=*/true)).relu_()).sigmoid();
    return y * weight + (shortcut_ ? shortcut_(activated) : x);
  }

 private:
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm2_;
  nn::Conv2d conv2_, shortcut_{nullptr}, squeeze_{nullptr}, excite_{nullptr};
};

class SeNet final : public Network {
 public:
  SeNet(const SeNetOptions& options, const ImageShape& input) {
    int in = options.scaled(64);
    stem_ = register_module("stem", ConvNormRelu(input.channels, in, 3, 1, Bias::kNo));
    in = add_stages<PreActivationBlock>(stages_, in, options.scaled({64, 128, 256, 512}), 2);
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

std::shared_ptr<Network> make(const SeNetOptions& options, const ImageShape& input) {
  if (options.form == "published" ? input.classes > 10 : options.form == "seresnet18")
    return make(SeResNet18Options{{options.width}}, input);
  return std::make_shared<SeNet>(options, input);
}

}  // namespace accordion
