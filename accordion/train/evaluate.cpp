#include "accordion/train/evaluate.h"

#include <cmath>

#include "accordion/data/streams.h"
#include "accordion/train/feed.h"

namespace accordion {
namespace {

struct Answers {
  std::int64_t samples = 0, correct = 0;
  double loss = 0;

  void add(const torch::Tensor& scores, const torch::Tensor& labels) {
    samples += labels.numel();
    loss += torch::nll_loss(scores.to(torch::kDouble).log_softmax(1), labels, {}, at::Reduction::Sum)
                .item<double>();
    correct += scores.argmax(1).eq(labels).sum().item<std::int64_t>();
  }

  // Of a large vocabulary, in single precision up to the sum.
  void add_text(const torch::Tensor& scores, const torch::Tensor& targets) {
    samples += targets.ne(kNoTarget).sum().item<std::int64_t>();
    loss += torch::nll_loss(scores.log_softmax(1), targets, {}, at::Reduction::None, kNoTarget)
                .to(torch::kDouble)
                .sum()
                .item<double>();
  }
};

}  // namespace

Evaluation evaluate(Network& model, const Dataset& data, int window, Communicator& control) {
  torch::NoGradGuard no_grad;
  const bool perplexity = by_perplexity(input_shape(data));
  Answers tally;
  const auto look = [&](const Example& example) {
    const torch::Tensor scores = model.forward(example.input);
    if (perplexity)
      tally.add_text(scores, example.targets);
    else
      tally.add(scores, example.targets);
  };
  model.eval();
  model.forget();
  std::visit([&](const auto& set) { show_tests(set, window, control.rank(), control.size(), look); },
             data.contents);
  model.forget();
  model.train();

  std::int64_t counts[] = {tally.samples, tally.correct};
  control.sum(std::span<std::int64_t>(counts));
  control.sum(std::span(&tally.loss, 1));
  const auto samples = static_cast<double>(counts[0]);
  Evaluation result{.loss = tally.loss / samples};
  if (perplexity)
    result.perplexity = std::exp(result.loss);
  else
    result.accuracy = static_cast<double>(counts[1]) / samples;
  return result;
}

}  // namespace accordion
