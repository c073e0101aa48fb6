#include "accordion/models/densenet.h"

#include "accordion/models/blocks.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

constexpr int kLayers[] = {6, 12, 24, 16};

// Adds `growth` channels to the input's, computed from all of them by way of 4 x growth.
class DenseLayer final : public nn::Module {
 public:
  DenseLayer(int in, int growth)
      : narrow_(register_module("narrow", NormReluConv(in, 4 * growth, 1, 1, Bias::kNo))),
        grow_(register_module("grow", NormReluConv(4 * growth, growth, 3, 1, Bias::kNo))) {}

  torch::Tensor forward(torch::Tensor x) { return torch::cat({x, grow_(narrow_(x))}, 1); }

 private:
  NormReluConv narrow_, grow_;
};

class DenseNet final : public Network {
 public:
  DenseNet(const DenseNetOptions& options, const ImageShape& input) {
    require_size(options.kName, input, 8, "it halves them 3 times");
    const int growth = options.scaled(12);
    int channels = 2 * growth;
    stem_ = register_module("stem", conv(input.channels, channels, 3, 1, Bias::kNo));
    for (std::size_t block = 0; block < std::size(kLayers); ++block) {
      if (block > 0) {  // A transition halves channels and image.
        blocks_->push_back(NormReluConv(channels, channels / 2, 1, 1, Bias::kNo));
        blocks_->push_back(nn::AvgPool2d(2));
        channels /= 2;
      }
      for (int layer = 0; layer < kLayers[block]; ++layer) {
        blocks_->push_back(std::make_shared<DenseLayer>(channels, growth));
        channels += growth;
      }
    }
    register_module("blocks", blocks_);
    norm_ = register_module("norm", nn::BatchNorm2d(channels));
    out_ = register_module("out", nn::Linear(channels, input.classes));
  }

  torch::Tensor forward(torch::Tensor x) override {
    return out_(global_average(norm_(blocks_->forward(stem_(x))).relu_()));
  }

 private:
  nn::Conv2d stem_{nullptr};
  nn::Sequential blocks_;
  nn::BatchNorm2d norm_{nullptr};
  nn::Linear out_{nullptr};
};

}  // namespace

std::shared_ptr<Network> make(const DenseNetOptions& options, const ImageShape& input) {
  return std::make_shared<DenseNet>(options, input);
}

}  // namespace accordion
