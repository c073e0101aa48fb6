#include "accordion/models/googlenet.h"

#include <optional>

#include "accordion/models/blocks.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

// Output channels of an inception's branches, and of the 1x1 convolutions that narrow the input for two.
struct Branches {
  int one, reduce_three, three, reduce_five, five, pool;
};

constexpr std::optional<Branches> kPool;
constexpr std::optional<Branches> kBody[] = {Branches{64, 96, 128, 16, 32, 32},
                                             Branches{128, 128, 192, 32, 96, 64},
                                             kPool,
                                             Branches{192, 96, 208, 16, 48, 64},
                                             Branches{160, 112, 224, 24, 64, 64},
                                             Branches{128, 128, 256, 24, 64, 64},
                                             Branches{112, 144, 288, 32, 64, 64},
                                             Branches{256, 160, 320, 32, 128, 128},
                                             kPool,
                                             Branches{256, 160, 320, 32, 128, 128},
                                             Branches{384, 192, 384, 48, 128, 128}};

ConvNormRelu unit(int in, int out, int kernel) {
  return ConvNormRelu(in, out, kernel, 1, Bias::kYes);
}

// Four views of the input, side by side. The 5x5 one is two 3x3, which see as far with fewer weights.
class Inception final : public nn::Module {
 public:
  Inception(int in, const Branches& to)
      : one_(register_module("one", unit(in, to.one, 1))),
        three_(register_module(
            "three", nn::Sequential(unit(in, to.reduce_three, 1), unit(to.reduce_three, to.three, 3)))),
        five_(register_module("five",
                              nn::Sequential(unit(in, to.reduce_five, 1), unit(to.reduce_five, to.five, 3),
                                             unit(to.five, to.five, 3)))),
        pool_(register_module("pool",
                              nn::Sequential(nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(1).padding(1)),
                                             unit(in, to.pool, 1)))) {}

  torch::Tensor forward(torch::Tensor x) {
    return torch::cat({one_(x), three_->forward(x), five_->forward(x), pool_->forward(x)}, 1);
  }

 private:
  ConvNormRelu one_;
  nn::Sequential three_, five_, pool_;
};

class GoogLeNet final : public Network {
 public:
  GoogLeNet(const GoogLeNetOptions& options, const ImageShape& input) {
    int in = options.scaled(192);
    stem_ = register_module("stem", unit(input.channels, in, 3));
    for (const std::optional<Branches>& part : kBody) {
      if (!part) {
        body_->push_back(nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
        continue;
      }
      const Branches to{options.scaled(part->one),   options.scaled(part->reduce_three),
                        options.scaled(part->three), options.scaled(part->reduce_five),
                        options.scaled(part->five),  options.scaled(part->pool)};
      body_->push_back(std::make_shared<Inception>(in, to));
      in = to.one + to.three + to.five + to.pool;
    }
    register_module("body", body_);
    out_ = register_module("out", nn::Linear(in, input.classes));
  }

  torch::Tensor forward(torch::Tensor x) override { return out_(global_average(body_->forward(stem_(x)))); }

 private:
  ConvNormRelu stem_{nullptr};
  nn::Sequential body_;
  nn::Linear out_{nullptr};
};

}  // namespace

std::shared_ptr<Network> make(const GoogLeNetOptions& options, const ImageShape& input) {
  return std::make_shared<GoogLeNet>(options, input);
}

}  // namespace accordion
