// Whether what compression costs is watched, and what for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accordion/adapt/control_options.h"

namespace accordion {

enum class GuardMode {
  kNone,      // Layers get the level that the controller says.
  kHarmless,  // The least traffic whose steps are no longer than plain ones.
  kFastest,   // The shortest steps.
};

inline const std::vector<std::string> kGuardModes = {"none", "harmless", "fastest"};

// One of kGuardModes.
inline GuardMode guard_mode(std::string_view name) {
  return name == "harmless"  ? GuardMode::kHarmless
         : name == "fastest" ? GuardMode::kFastest
                             : GuardMode::kNone;
}

// What is decided by before the first step, where nothing can be tried out in the run (guard_profile.h).
struct GuardProfile {
  std::string file = "";   // Nothing: there is none.
  std::string model = "";  // Which of its models; nothing: its only one.
  int batch = 0;           // Of one worker; 0: the first that it has for the model.

  bool given() const { return !file.empty(); }
};

// Throws UsageError for what cannot be guarded: published behaviour to the letter, and codecs that keep the optimizer's
// momentum, which cannot change sides in mid-run, unless it is `foretold` whether they pay: by a profile (guard_profile.h), or
// by the run that is replayed.
void check_guard(std::string_view owner, GuardMode mode, const ControlOptions& control,
                 bool foretold = false);

// What was asked for, or else harmless wherever there is something to guard and it can be. Throws UsageError for levels that
// contradict each other.
GuardMode guard_or_harmless(std::optional<GuardMode> asked, const ControlOptions& control,
                            bool foretold = false);

}  // namespace accordion
