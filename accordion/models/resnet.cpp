#include "accordion/models/resnet.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

nn::Conv2d conv(int in, int out, int kernel, int stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// conv-BN-ReLU-conv-BN, plus the input, by a 1x1 convolution where the shape changes.
class BasicBlock final : public nn::Module {
 public:
  BasicBlock(int in, int out, int stride)
      : conv1_(register_module("conv1", conv(in, out, 3, stride))),
        norm1_(register_module("norm1", nn::BatchNorm2d(out))),
        conv2_(register_module("conv2", conv(out, out, 3, 1))),
        norm2_(register_module("norm2", nn::BatchNorm2d(out))) {
    if (stride == 1 && in == out) return;
    shortcut_ = register_module("shortcut", nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out)));
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
  ResNet(const InputShape& input, int width, const std::vector<int>& blocks)
      : stem_(register_module("stem", conv(input.channels, width, 3, 1))),
        norm_(register_module("norm", nn::BatchNorm2d(width))) {
    int in = width;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
      const int out = width << stage;
      for (int block = 0; block < blocks[stage]; ++block) {
        stages_->push_back(std::make_shared<BasicBlock>(in, out, block == 0 && stage > 0 ? 2 : 1));
        in = out;
      }
    }
    register_module("stages", stages_);
    out_ = register_module("out", nn::Linear(in, input.classes));
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = stages_->forward(norm_(stem_(x)).relu_());
    return out_(x.mean({2, 3}));
  }

 private:
  nn::Conv2d stem_;
  nn::BatchNorm2d norm_;
  nn::Sequential stages_;
  nn::Linear out_{nullptr};
};

}  // namespace

std::shared_ptr<Network> make_resnet18(const InputShape& input) {
  return std::make_shared<ResNet>(input, 64, std::vector{2, 2, 2, 2});
}

std::shared_ptr<Network> make_resnet20(const InputShape& input) {
  return std::make_shared<ResNet>(input, 16, std::vector{3, 3, 3});
}

}  // namespace accordion
