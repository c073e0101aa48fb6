#include "accordion/run/plan.h"

#include <algorithm>

namespace accordion {

EpochPlan plan_epoch(std::size_t samples, int batch, int accumulate, int rank, int ranks, bool drop_last) {
  EpochPlan plan;
  const auto micro = static_cast<std::size_t>(batch);
  const std::size_t global_batch =
      micro * static_cast<std::size_t>(accumulate) * static_cast<std::size_t>(ranks);
  if (drop_last) samples -= samples % global_batch;
  std::size_t begin = 0;
  for (const Share& mine : batch_shares(samples, global_batch, rank, ranks)) {
    const std::size_t global = std::min(global_batch, samples - begin);
    Step step{static_cast<std::int64_t>(mine.size()), static_cast<std::int64_t>(global), 0};
    for (std::size_t at = mine.begin; at < mine.end; at += micro, ++step.micro_batches)
      plan.micro_batches.push_back({at, std::min(at + micro, mine.end)});
    if (step.micro_batches == 0) {
      plan.micro_batches.push_back({begin, begin + 1});
      step.micro_batches = 1;
    }
    plan.steps.push_back(step);
    begin += global;
  }
  return plan;
}

EpochPlan plan_text(std::size_t positions, int streams, int window, int accumulate, int ranks,
                    bool drop_last) {
  EpochPlan plan;
  const auto length = static_cast<std::size_t>(window),
             of_step = length * static_cast<std::size_t>(accumulate);
  if (drop_last) positions -= positions % of_step;
  for (std::size_t begin = 0; begin < positions; begin += of_step) {
    const std::size_t end = std::min(begin + of_step, positions);
    const std::int64_t tokens = static_cast<std::int64_t>(end - begin) * streams;
    Step step{tokens, tokens * ranks, 0};
    for (std::size_t at = begin; at < end; at += length, ++step.micro_batches)
      plan.micro_batches.push_back({at, std::min(at + length, end)});
    plan.steps.push_back(step);
  }
  return plan;
}

std::size_t EpochPlan::begin_of(std::int64_t step) const {
  std::size_t micro_batch = 0;
  for (std::size_t s = 0; s < std::min(static_cast<std::size_t>(step), steps.size()); ++s)
    micro_batch += static_cast<std::size_t>(steps[s].micro_batches);
  return micro_batch;
}

}  // namespace accordion
