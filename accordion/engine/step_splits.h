// Where the time of an epoch's steps went on this rank, in the mean.
#pragma once

#include <cstdint>
#include <optional>

#include "accordion/engine/step_trace.h"
#include "accordion/log/epoch_record.h"

namespace accordion {

// Of one step that has a begin, in seconds times 1000.
StepSplit split_of(const StepTrace& trace);

class StepSplits {
 public:
  void add(const StepTrace& trace);
  // Since it was last taken; none where no step followed another one.
  std::optional<StepSplit> take();

 private:
  std::int64_t steps_ = 0;
  StepSplit sum_;
};

}  // namespace accordion
