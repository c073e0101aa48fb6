// What a step will send, told by the codecs before there is a gradient. Messages whose length depends on the
// gradient have bounds: they hold wherever gradients are finite.
#pragma once

#include <span>
#include <vector>

#include "accordion/exchange/exchange.h"
#include "accordion/exchange/tally.h"

namespace accordion {

struct TallyRange {
  Tally least, most;

  bool exact() const { return least == most; }
  bool operator==(const TallyRange&) const = default;
};

// The smaller, or the larger, of each count: a bound on both.
Tally at_most_both(const Tally& a, const Tally& b, int ranks);
Tally at_least_both(const Tally& a, const Tally& b, int ranks);

class StepForecast {
 public:
  // As an Exchange with these options would count on rank 0, in any of the first `epochs` epochs. Throws
  // UsageError for settings that so many ranks cannot have.
  StepForecast(const std::vector<TensorInfo>& tensors, const ExchangeOptions& options, int ranks, int epochs);

  std::size_t tensors() const { return tensors_.size(); }
  int levels() const { return levels_; }

  // One tensor's share of a step.
  const TallyRange& tensor(std::size_t i, int level, int epoch) const;

  // A whole step, with one level a tensor.
  TallyRange step(std::span<const int> levels, int epoch) const;

 private:
  int levels_;
  // Per tensor, per level: one an epoch, the last of them for all that follow.
  std::vector<std::vector<std::vector<TallyRange>>> tensors_;
};

}  // namespace accordion
