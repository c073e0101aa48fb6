#include <cmath>

#include "accordion/adapt/control.h"
#include "accordion/adapt/static.h"

namespace accordion {

// One hard threshold throughout, chosen so that the expected share of entries is sent. (Sahu et al.,
// "Rethinking gradient sparsification as total error minimization", 2021.)
ControllerKind rethink_controller() {
  return {
      .name = "rethink",
      .help = "a hard threshold throughout, from the share of entries to be sent (density)",
      .levels = TakesLevels::kOwn,
      .make = [](const ControlOptions&, std::size_t layers, int) { return make_static(layers); },
      .own_levels = [](const ControlOptions& options, std::size_t parameters) -> std::vector<CodecOptions> {
        const double sent = options.density * static_cast<double>(parameters);
        return {ThresholdOptions{.lambda = 1 / (2 * std::sqrt(sent))}};
      }};
}

}  // namespace accordion
