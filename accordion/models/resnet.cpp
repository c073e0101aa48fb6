#include "accordion/models/resnet.h"

#include "accordion/models/blocks.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

// conv-BN-ReLU-conv-BN, plus the input, by a 1x1 convolution where the shape changes.
class BasicBlock final : public nn::Module {
 public:
  BasicBlock(int in, int out, int stride)
      : conv1_(register_module("conv1", conv(in, out, 3, stride, Bias::kNo))),
        norm1_(register_module("norm1", nn::BatchNorm2d(out))),
        conv2_(register_module("conv2", conv(out, out, 3, 1, Bias::kNo))),
        norm2_(register_module("norm2", nn::BatchNorm2d(out))) {
    if (stride == 1 && in == out) return;
    shortcut_ = register_module("shortcut",
                                nn::Sequential(conv(in, out, 1, stride, Bias::kNo), nn::BatchNorm2d(out)));
  }

  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor y = norm2_(conv2_(norm1_(conv1_(x)).relu_()));
    y += shortcut_ ? shortcut_->forward(x) : x;
    return y.relu_();
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d norm2_;
  nn::Sequential shortcut_{nullptr};
};

class ResNet final : public Network {
 public:
  ResNet(const ImageShape& input, const std::vector<int>& widths, int blocks) {
    int in = widths[0];
    stem_ = register_module("stem", conv(input.channels, in, 3, 1, Bias::kNo));
    norm_ = register_module("norm", nn::BatchNorm2d(in));
    in = add_stages<BasicBlock>(stages_, in, widths, blocks);
    register_module("stages", stages_);
    out_ = register_module("out", nn::Linear(in, input.classes));
  }

  torch::Tensor forward(torch::Tensor x) override {
    return out_(global_average(stages_->forward(norm_(stem_(x)).relu_())));
  }

 private:
  nn::Conv2d stem_{nullptr};
  nn::BatchNorm2d norm_{nullptr};
  nn::Sequential stages_;
  nn::Linear out_{nullptr};
};

}  // namespace

std::shared_ptr<Network> make(const ResNet18Options& options, const ImageShape& input) {
  return std::make_shared<ResNet>(input, options.scaled({64, 128, 256, 512}), 2);
}

std::shared_ptr<Network> make(const ResNet20Options& options, const ImageShape& input) {
  return std::make_shared<ResNet>(input, options.scaled({16, 32, 64}), 3);
}

}  // namespace accordion
