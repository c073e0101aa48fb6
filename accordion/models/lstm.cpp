#include "accordion/models/lstm.h"

#include "accordion/models/network.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

class Lstm final : public Network {
 public:
  Lstm(const LstmOptions& options, const TextShape& input)
      : layers_(options.layers),
        embedding_(register_module("embedding", nn::Embedding(input.vocabulary, options.hidden))),
        lstm_(register_module("lstm", nn::LSTM(nn::LSTMOptions(options.hidden, options.hidden)
                                                   .num_layers(options.layers)
                                                   // Between layers; torch warns where there is no between.
                                                   .dropout(options.layers > 1 ? options.dropout : 0)))),
        bias_(register_parameter("bias", torch::zeros(input.vocabulary))),
        dropout_(register_module("dropout", nn::Dropout(options.dropout))) {
    nn::init::uniform_(embedding_->weight, -0.1, 0.1);
  }

  torch::Tensor forward(torch::Tensor tokens) override {
    torch::Tensor x = dropout_(embedding_(tokens.t()));  // [position][stream], the order in which they come.
    if (!hidden_.defined() || hidden_.size(1) != x.size(1))
      hidden_ = cell_ = torch::zeros({layers_, x.size(1), x.size(2)}, x.options());
    const auto [y, state] = lstm_(x, std::tuple(hidden_, cell_));
    hidden_ = std::get<0>(state).detach();
    cell_ = std::get<1>(state).detach();
    return torch::linear(dropout_(y).transpose(0, 1).flatten(0, 1), embedding_->weight, bias_);
  }

  void forget() override { hidden_ = cell_ = torch::Tensor(); }
  std::vector<torch::Tensor> remembered() const override {
    return hidden_.defined() ? std::vector{hidden_, cell_} : std::vector<torch::Tensor>();
  }
  void remember(const std::vector<torch::Tensor>& tensors) override {
    forget();
    if (tensors.size() == 2) hidden_ = tensors[0], cell_ = tensors[1];
  }

 private:
  int layers_;
  nn::Embedding embedding_;
  nn::LSTM lstm_;
  torch::Tensor bias_;
  nn::Dropout dropout_;
  torch::Tensor hidden_, cell_;  // [layer][stream][unit]; no buffers, as each rank reads a text of its own.
};

}  // namespace

std::shared_ptr<Network> make(const LstmOptions& options, const TextShape& input) {
  return std::make_shared<Lstm>(options, input);
}

}  // namespace accordion
