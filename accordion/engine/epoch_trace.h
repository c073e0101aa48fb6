// The steps of an epoch on all ranks as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open: when buckets became
// ready, and when their messages were encoded, moved and decoded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/engine/engine.h"

namespace accordion {

// Watches the engine's steps from its making on. All calls are collective.
class EpochTrace {
 public:
  // Ranks agree on a beginning: clocks of different machines need not.
  EpochTrace(Engine& engine, Communicator& control);

  // All ranks' steps as Chrome's trace format; on rank 0, elsewhere empty.
  std::string finish();

 private:
  static constexpr std::size_t kMostSteps = 2000;  // More than that no viewer shows well.
  Engine& engine_;
  Communicator& control_;
  StepClock::time_point begin_;
  // Shared with the engine, which may outlive an epoch that fails.
  std::shared_ptr<std::vector<StepTrace>> steps_ = std::make_shared<std::vector<StepTrace>>();
};

// The events of one rank's steps, separated by commas.
std::string trace_events(const std::vector<StepTrace>& steps, StepClock::time_point begin, int rank);

}  // namespace accordion
