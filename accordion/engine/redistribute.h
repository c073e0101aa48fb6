// What ranks are owed, for a group of another size. A mean over ranks is what reaches the others, so it is the mean that must
// stay: a rank of the new group takes over what some of the old one kept, times new size over old size.
#pragma once

#include <span>

#include "accordion/base/state.h"

namespace accordion {

// The engine's state (engine.h) for rank `rank` of `ranks`. `first` is that of the old group's rank 0; `taken_over` are those of
// the ranks whose residuals this one gets: each of the old group is taken over by one of the new. Throws Error for states that
// do not belong together.
State redistributed(const State& first, std::span<const State> taken_over, int rank, int ranks);

}  // namespace accordion
