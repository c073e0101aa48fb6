#include "accordion/run/plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace accordion {
namespace {

TEST(Plan, RanksTogetherTakeEverySampleOfEachStepOnce) {
  EXPECT_TRUE(rc::check([] {
    const auto samples = *rc::gen::inRange<std::size_t>(1, 400);
    const int batch = *rc::gen::inRange(1, 20), accumulate = *rc::gen::inRange(1, 4),
              ranks = *rc::gen::inRange(1, 7);
    std::vector<int> taken(samples, 0);
    std::size_t steps = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const EpochPlan plan = plan_epoch(samples, batch, accumulate, rank, ranks);
      steps = plan.steps.size();
      std::size_t micro = 0, step_begin = 0;
      for (const Step& step : plan.steps) {
        std::int64_t local = 0;
        RC_ASSERT(step.micro_batches >= 1);
        RC_ASSERT(step.micro_batches <= accumulate);
        for (int i = 0; i < step.micro_batches; ++i, ++micro) {
          const Share& share = plan.micro_batches[micro];
          RC_ASSERT(share.size() >= 1u);
          RC_ASSERT(share.size() <= static_cast<std::size_t>(batch));
          RC_ASSERT(share.begin >= step_begin);
          RC_ASSERT(share.end <= step_begin + static_cast<std::size_t>(step.global_samples));
          if (step.local_samples == 0) continue;
          local += static_cast<std::int64_t>(share.size());
          for (std::size_t at = share.begin; at < share.end; ++at) ++taken[at];
        }
        RC_ASSERT(local == step.local_samples);
        step_begin += static_cast<std::size_t>(step.global_samples);
      }
      RC_ASSERT(step_begin == samples);
    }
    const std::size_t global = static_cast<std::size_t>(batch) * accumulate * ranks;
    RC_ASSERT(steps == (samples + global - 1) / global);
    for (int count : taken) RC_ASSERT(count == 1);
  }));
}

TEST(Plan, PublishedStepsPerEpoch) {
  EXPECT_EQ(plan_epoch(50000, 128, 1, 0, 4).steps.size(), 98u);
  EXPECT_EQ(plan_epoch(50000, 128, 1, 0, 4, true).steps.size(), 97u);
  EXPECT_EQ(plan_epoch(50000, 128, 8, 0, 4, true).steps.size(), 12u);
}

TEST(Plan, WindowsOfTextFollowEachOtherToTheEnd) {
  EXPECT_TRUE(rc::check([](bool drop_last) {
    const auto positions = *rc::gen::inRange<std::size_t>(1, 300);
    const int streams = *rc::gen::inRange(1, 9), window = *rc::gen::inRange(1, 40),
              accumulate = *rc::gen::inRange(1, 4), ranks = *rc::gen::inRange(1, 5);
    const EpochPlan plan = plan_text(positions, streams, window, accumulate, ranks, drop_last);
    std::size_t at = 0, micro = 0;
    for (const Step& step : plan.steps) {
      const std::size_t begin = at;
      for (int i = 0; i < step.micro_batches; ++i, ++micro) {
        RC_ASSERT(plan.micro_batches.at(micro).begin == at);
        at = plan.micro_batches[micro].end;
        RC_ASSERT(at - plan.micro_batches[micro].begin <= static_cast<std::size_t>(window));
      }
      RC_ASSERT(step.local_samples == static_cast<std::int64_t>(at - begin) * streams);
      RC_ASSERT(step.global_samples == step.local_samples * ranks);
      if (drop_last) RC_ASSERT(at - begin == static_cast<std::size_t>(window) * accumulate);
    }
    RC_ASSERT(micro == plan.micro_batches.size());
    const std::size_t left = positions - at;
    RC_ASSERT(left < (drop_last ? static_cast<std::size_t>(window) * accumulate : 1u));
  }));
}

}  // namespace
}  // namespace accordion
