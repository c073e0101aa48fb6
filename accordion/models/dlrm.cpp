#include "accordion/models/dlrm.h"

#include <cmath>
#include <vector>

#include "accordion/models/blocks.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

// Weights at the start as the paper's code has them.
nn::Linear xavier_linear(int in, int out) {
  nn::Linear layer(in, out);
  nn::init::xavier_normal_(layer->weight);
  nn::init::normal_(layer->bias, 0, 1 / std::sqrt(static_cast<double>(out)));
  return layer;
}

nn::Embedding table(int categories, int width) {
  nn::Embedding vectors(categories, width);
  const double most = 1 / std::sqrt(static_cast<double>(categories));
  nn::init::uniform_(vectors->weight, -most, most);
  return vectors;
}

nn::Sequential mlp(int in, int hidden, int out) {
  return nn::Sequential(xavier_linear(in, hidden), relu_in_place(), xavier_linear(hidden, hidden / 2),
                        relu_in_place(), xavier_linear(hidden / 2, out));
}

class Dlrm final : public Network {
 public:
  Dlrm(const DlrmOptions& options, const TableShape& input)
      : numbers_(input.numbers),
        sizes_(torch::tensor(std::vector<std::int64_t>(input.tables.begin(), input.tables.end()))),
        bottom_(register_module("bottom", mlp(input.numbers, options.bottom, options.embedding))),
        tables_(register_module("tables", nn::ModuleList())) {
    for (const int categories : input.tables) tables_->push_back(table(categories, options.embedding));
    const int vectors = 1 + static_cast<int>(input.tables.size());
    const torch::Tensor pairs = torch::tril_indices(vectors, vectors, -1);
    pairs_ = pairs[0] * vectors + pairs[1];
    top_ = register_module("top", mlp(options.embedding + vectors * (vectors - 1) / 2, options.top, 1));
  }

  torch::Tensor forward(torch::Tensor rows) override {
    const torch::Tensor categories = rows.narrow(1, numbers_, sizes_.size(0)).to(torch::kLong);
    require_known(categories);
    const torch::Tensor numbers = bottom_->forward(rows.narrow(1, 0, numbers_)).relu_();
    std::vector<torch::Tensor> vectors = {numbers};
    for (std::size_t i = 0; i < tables_->size(); ++i)
      vectors.push_back(
          tables_->at<nn::EmbeddingImpl>(i).forward(categories.select(1, static_cast<std::int64_t>(i))));
    const torch::Tensor each = torch::stack(vectors, 1);
    const torch::Tensor products = torch::bmm(each, each.transpose(1, 2)).flatten(1).index_select(1, pairs_);
    const torch::Tensor logit = top_->forward(torch::cat({numbers, products}, 1));
    return torch::cat({torch::zeros_like(logit), logit}, 1);
  }

 private:
  void require_known(const torch::Tensor& categories) const {
    const torch::Tensor unknown = (categories < 0).logical_or_(categories >= sizes_);
    if (!unknown.any().item<bool>()) return;
    const torch::Tensor first = unknown.nonzero()[0];
    const auto row = first[0].item<std::int64_t>(), column = first[1].item<std::int64_t>();
    throw Error("dlrm: category " + std::to_string(categories[row][column].item<std::int64_t>()) +
                " of table " + std::to_string(column) + " in row " + std::to_string(row) +
                " of the batch, expected [0, " + std::to_string(sizes_[column].item<std::int64_t>()) + ")");
  }

  int numbers_;
  torch::Tensor sizes_, pairs_;  // Categories of each table; where in the products each pair is, once.
  nn::Sequential bottom_;
  nn::ModuleList tables_;
  nn::Sequential top_{nullptr};
};

}  // namespace

std::shared_ptr<Network> make(const DlrmOptions& options, const TableShape& input) {
  if (input.numbers < 1 || input.tables.empty())
    throw UsageError("dlrm: rows of " + std::to_string(input.numbers) + " numbers and " +
                     std::to_string(input.tables.size()) + " categories, expected at least one of each");
  return std::make_shared<Dlrm>(options, input);
}

}  // namespace accordion
