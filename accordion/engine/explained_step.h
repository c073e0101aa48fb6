// One step beside what the model of a step (perf/step.h) makes of it.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/engine/step_costs.h"
#include "accordion/engine/step_trace.h"
#include "accordion/perf/step.h"

namespace accordion {

struct ExplainedStep {
  perf::Timeline measured, predicted;
};

// The last few steps with the same levels, kDense where a tensor went dense, and the same buckets.
class RecentSteps {
 public:
  void add(const StepTrace& trace, std::vector<int> levels);

  // The last of them. What is predicted follows from `costs`, where those were learned from other steps with these buckets,
  // or else from the parts of these. Nothing where no step was seen whole. Collective.
  std::optional<ExplainedStep> explain(Communicator& ranks, const StepCosts* costs,
                                       const Exchange& exchange) const;

 private:
  static constexpr std::size_t kKept = 9;
  std::deque<std::pair<StepTrace, std::vector<int>>> steps_;
};

}  // namespace accordion
