// One step as a small chart of text: backward, and each bucket's encoding, wire and decoding, measured beside predicted.
#pragma once

#include <string>

#include "accordion/perf/step.h"

namespace accordion {

// `width`: columns for the whole of the longer one.
std::string step_chart(const perf::Timeline& measured, const perf::Timeline& predicted, int width = 64);

}  // namespace accordion
