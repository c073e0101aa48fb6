#include "accordion/train/evaluate.h"

#include <cmath>
#include <numeric>

#include "accordion/data/loader.h"
#include "accordion/data/streams.h"
#include "accordion/train/batch_tensors.h"
#include "accordion/train/table_rows.h"

namespace accordion {
namespace {

// The same for any number of ranks.
constexpr std::size_t kBatch = 250, kStreams = 32;

struct Tally {
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

std::vector<Share> batches_of(Share mine) {
  std::vector<Share> batches;
  for (std::size_t at = mine.begin; at < mine.end; at += kBatch)
    batches.push_back({at, std::min(at + kBatch, mine.end)});
  return batches;
}

std::vector<std::uint32_t> all(std::size_t samples) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void go_through(const ImageSet& data, Network& model, int, const Communicator& control, Tally& tally) {
  const Images& images = data.test;
  BatchLoader loader(images, data.mean, data.deviation);
  loader.queue(0, all(images.size()), batches_of(share(0, images.size(), control.rank(), control.size())));
  while (const auto batch = loader.next()) {
    const auto [inputs, labels] = batch_tensors(*batch, images);
    tally.add(model.forward(inputs), labels);
  }
}

void go_through(const TableSet& data, Network& model, int, const Communicator& control, Tally& tally) {
  const std::vector<std::uint32_t> rows = all(data.test.size());
  for (const Share& batch : batches_of(share(0, rows.size(), control.rank(), control.size()))) {
    const Example example = table_rows(data.test, std::span(rows).subspan(batch.begin, batch.size()));
    tally.add(model.forward(example.input), example.targets);
  }
}

// Ranks divide streams, and a stream is read from its beginning to its end.
void go_through(const TextSet& data, Network& model, int window, const Communicator& control, Tally& tally) {
  const TextStreams text(data.test, std::min(kStreams, std::max<std::size_t>(data.test.size(), 2) - 1),
                         Tail::kPad);
  const Share mine = share(0, text.count(), control.rank(), control.size());
  if (mine.size() == 0) return;
  const auto streams = static_cast<std::int64_t>(mine.size());
  for (std::size_t at = 0; at < text.length(); at += static_cast<std::size_t>(window)) {
    const Share positions{at, std::min(at + static_cast<std::size_t>(window), text.length())};
    const auto length = static_cast<std::int64_t>(positions.size());
    const torch::Tensor inputs = torch::empty({streams, length}, torch::kLong),
                        targets = torch::empty({streams * length}, torch::kLong);
    const auto size = static_cast<std::size_t>(streams * length);
    text.read(mine, positions, {inputs.data_ptr<std::int64_t>(), size},
              {targets.data_ptr<std::int64_t>(), size});
    tally.add_text(model.forward(inputs), targets);
  }
}

}  // namespace

Evaluation evaluate(Network& model, const Dataset& data, int window, Communicator& control) {
  torch::NoGradGuard no_grad;
  Tally tally;
  model.eval();
  model.forget();
  std::visit([&](const auto& contents) { go_through(contents, model, window, control, tally); },
             data.contents);
  model.forget();
  model.train();

  std::int64_t counts[] = {tally.samples, tally.correct};
  control.sum(std::span<std::int64_t>(counts));
  control.sum(std::span(&tally.loss, 1));
  const auto samples = static_cast<double>(counts[0]);
  Evaluation result{.loss = tally.loss / samples};
  if (std::holds_alternative<TextSet>(data.contents))
    result.perplexity = std::exp(result.loss);
  else
    result.accuracy = static_cast<double>(counts[1]) / samples;
  return result;
}

}  // namespace accordion
