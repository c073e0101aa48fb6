#include "accordion/train/evaluate.h"

#include <numeric>

#include "accordion/data/loader.h"
#include "accordion/train/batch_tensors.h"

namespace accordion {

Evaluation evaluate(Network& model, const ImageSet& data, const Images& images, Communicator& control) {
  constexpr std::size_t kBatch = 250;
  torch::NoGradGuard no_grad;
  model.eval();

  const Share mine = share(0, images.size(), control.rank(), control.size());
  std::vector<std::uint32_t> order(images.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<Share> batches;
  for (std::size_t at = mine.begin; at < mine.end; at += kBatch)
    batches.push_back({at, std::min(at + kBatch, mine.end)});

  std::int64_t correct = 0;
  double loss = 0;
  BatchLoader loader(images, data.mean, data.deviation);
  loader.queue(0, std::move(order), std::move(batches));
  while (const auto batch = loader.next()) {
    const auto [inputs, labels] = batch_tensors(*batch, images);
    const torch::Tensor scores = model.forward(inputs);
    loss += torch::nll_loss(scores.to(torch::kDouble).log_softmax(1), labels, {}, at::Reduction::Sum)
                .item<double>();
    correct += scores.argmax(1).eq(labels).sum().item<std::int64_t>();
  }
  model.train();

  control.sum(std::span(&correct, 1));
  control.sum(std::span(&loss, 1));
  const auto samples = static_cast<double>(images.size());
  return {loss / samples, static_cast<double>(correct) / samples};
}

}  // namespace accordion
