#include "accordion/models/gpt.h"

#include <cmath>
#include <limits>

#include "accordion/models/network.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

constexpr double kDeviation = 0.02;  // Of weights at the start (Radford et al. 2019).

nn::Linear linear(int in, int out, double deviation = kDeviation) {
  nn::Linear layer(in, out);
  nn::init::normal_(layer->weight, 0, deviation);
  nn::init::zeros_(layer->bias);
  return layer;
}

nn::Embedding embedding(int count, int width) {
  nn::Embedding table(count, width);
  nn::init::normal_(table->weight, 0, kDeviation);
  return table;
}

nn::LayerNorm norm(int width) {
  return nn::LayerNorm(nn::LayerNormOptions({width}));
}

// x + attention(norm(x)), then x + mlp(norm(x)).
class Block final : public nn::Module {
 public:
  explicit Block(const GptOptions& options)
      : heads_(options.heads),
        norm1_(register_module("norm1", norm(options.width))),
        qkv_(register_module("qkv", linear(options.width, 3 * options.width))),
        mixed_(register_module("mixed", linear(options.width, options.width, last_deviation(options)))),
        norm2_(register_module("norm2", norm(options.width))),
        up_(register_module("up", linear(options.width, 4 * options.width))),
        down_(register_module("down", linear(4 * options.width, options.width, last_deviation(options)))),
        dropout_(register_module("dropout", nn::Dropout(options.dropout))) {}

  // `later` is true where a column comes after its row.
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& later) {
    x = x + dropout_(mixed_(attention(norm1_(x), later)));
    return x + dropout_(down_(torch::gelu(up_(norm2_(x)))));
  }

 private:
  // Every block adds twice to what the decoder sees: the sum starts as large as if there were one addition.
  static double last_deviation(const GptOptions& options) {
    return kDeviation / std::sqrt(2.0 * options.layers);
  }

  torch::Tensor attention(const torch::Tensor& x, const torch::Tensor& later) {
    const auto streams = x.size(0), positions = x.size(1), width = x.size(2);
    const auto parts =
        qkv_(x).view({streams, positions, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4}).unbind(0);
    const double scale = 1 / std::sqrt(static_cast<double>(width / heads_));
    const torch::Tensor match = torch::matmul(parts[0] * scale, parts[1].transpose(2, 3));
    const torch::Tensor weights =
        dropout_(match.masked_fill(later, -std::numeric_limits<double>::infinity()).softmax(3));
    return torch::matmul(weights, parts[2]).transpose(1, 2).reshape({streams, positions, width});
  }

  int heads_;
  nn::LayerNorm norm1_;
  nn::Linear qkv_, mixed_;
  nn::LayerNorm norm2_;
  nn::Linear up_, down_;
  nn::Dropout dropout_;
};

class Gpt final : public Network {
 public:
  Gpt(const GptOptions& options, const TextShape& input)
      : context_(options.context),
        tokens_(register_module("tokens", embedding(input.vocabulary, options.width))),
        positions_(register_module("positions", embedding(options.context, options.width))),
        dropout_(register_module("dropout", nn::Dropout(options.dropout))),
        blocks_(register_module("blocks", nn::ModuleList())) {
    for (int i = 0; i < options.layers; ++i) blocks_->push_back(std::make_shared<Block>(options));
    norm_ = register_module("norm", norm(options.width));
  }

  torch::Tensor forward(torch::Tensor tokens) override {
    const auto positions = tokens.size(1);
    if (positions > context_)
      throw Error("gpt: a window of " + std::to_string(positions) +
                  " tokens, expected at most context=" + std::to_string(context_));
    const torch::Tensor later = torch::ones({positions, positions}, torch::kBool).triu(1);
    torch::Tensor x = dropout_(tokens_(tokens) + positions_->weight.narrow(0, 0, positions));
    for (const auto& block : *blocks_) x = block->as<Block>()->forward(x, later);
    return torch::linear(norm_(x).flatten(0, 1), tokens_->weight);
  }

 private:
  int context_;
  nn::Embedding tokens_, positions_;
  nn::Dropout dropout_;
  nn::ModuleList blocks_;
  nn::LayerNorm norm_{nullptr};
};

}  // namespace

std::shared_ptr<Network> make(const GptOptions& options, const TextShape& input) {
  options.check();
  return std::make_shared<Gpt>(options, input);
}

}  // namespace accordion
