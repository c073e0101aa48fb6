// When gradients travel, and what becomes of those that are not finite.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace accordion {

// What a step's gradients become when a rank had values that are not finite. In any case nothing of the step
// is kept.
enum class NonFinite {
  kPropagate,  // NaN, which a loss scaler takes as a sign to skip the step.
  kSkip,       // Zero.
  kThrow,      // An Error on every rank.
};

inline const std::vector<std::string> kNonFinites = {"propagate", "skip", "throw"};

// One of kNonFinites.
inline NonFinite non_finite(std::string_view name) {
  return name == "skip" ? NonFinite::kSkip : name == "throw" ? NonFinite::kThrow : NonFinite::kPropagate;
}

struct CommunicationOptions {
  NonFinite on_non_finite = NonFinite::kPropagate;
  // Exchange starts when the step's last bucket is there: nothing is hidden behind backward.
  bool deferred = false;
  // Limit of the norm of all of this rank's gradients, applied before they are encoded; 0 for none. Needs all
  // of a step's buckets, so it implies `deferred`.
  double clip_norm = 0;
};

}  // namespace accordion
