// What another run decided, to be decided again.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "accordion/adapt/control.h"
#include "accordion/log/guard_event.h"
#include "accordion/run/options.h"

namespace accordion {

// The options of a run's controller: its levels, its windows, its batch sizes.
ControlOptions recorded_control(const std::filesystem::path& folder);

// What its guard did, in order; none without one.
std::vector<GuardEvent> recorded_guard(const std::filesystem::path& folder);

// What will run: of a replay, with the controller's options of the run that is replayed. Throws UsageError as
// check_train_options does.
TrainOptions resolve(const TrainOptions& given);

// Throws UsageError when the run's layers are not these.
std::unique_ptr<Controller> replayed_controller(const std::filesystem::path& folder,
                                                const std::vector<std::string>& layers);

// The controller of a run over these parameters; of a replay, the one that repeats it.
std::unique_ptr<Controller> run_controller(const TrainOptions& options,
                                           const std::vector<std::string>& layers, int levels);

}  // namespace accordion
