#include "accordion/models/wideresnet.h"

#include "accordion/models/blocks.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

// BN-ReLU-conv-BN-ReLU-conv, plus the raw input, by a 1x1 convolution where the shape changes. The stride is
// the second convolution's, so the first one sees the whole image.
class WideBlock final : public nn::Module {
 public:
  WideBlock(int in, int out, int stride)
      : first_(register_module("first", NormReluConv(in, out, 3, 1, Bias::kYes))),
        second_(register_module("second", NormReluConv(out, out, 3, stride, Bias::kYes))) {
    if (stride == 1 && in == out) return;
    shortcut_ = register_module("shortcut", conv(in, out, 1, stride, Bias::kYes));
  }

  torch::Tensor forward(torch::Tensor x) { return second_(first_(x)) + (shortcut_ ? shortcut_(x) : x); }

 private:
  NormReluConv first_, second_;
  nn::Conv2d shortcut_{nullptr};
};

class WideResNet final : public Network {
 public:
  WideResNet(const WideResNetOptions& options, const ImageShape& input)
      : stem_(register_module("stem", conv(input.channels, 16, 3, 1, Bias::kYes))) {
    const int in = add_stages<WideBlock>(stages_, 16, options.scaled({160, 320, 640}), 4);
    register_module("stages", stages_);
    norm_ = register_module("norm", nn::BatchNorm2d(nn::BatchNorm2dOptions(in).momentum(0.9)));
    out_ = register_module("out", nn::Linear(in, input.classes));
  }

  torch::Tensor forward(torch::Tensor x) override {
    return out_(global_average(norm_(stages_->forward(stem_(x))).relu_()));
  }

 private:
  nn::Conv2d stem_;
  nn::Sequential stages_;
  nn::BatchNorm2d norm_{nullptr};
  nn::Linear out_{nullptr};
};

}  // namespace

std::shared_ptr<Network> make(const WideResNetOptions& options, const ImageShape& input) {
  return std::make_shared<WideResNet>(options, input);
}

}  // namespace accordion
