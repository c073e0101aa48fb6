#include "accordion/engine/guard_mode.h"

#include <algorithm>

#include "accordion/base/error.h"

namespace accordion {
namespace {

// Why these cannot be guarded; empty: they can.
std::string refusal(const ControlOptions& control) {
  if (control.published()) return "with parity=paper, which repeats the published code to the letter";
  const std::vector<CodecOptions> levels = control_levels("control", control, kAnyModel);
  if (std::any_of(levels.begin(), levels.end(),
                  [](const CodecOptions& level) { return traits_of(level).momentum.has_value(); }))
    return "with a codec that keeps the optimizer's momentum, which cannot change sides in mid-run";
  return "";
}

}  // namespace

void check_guard(std::string_view owner, GuardMode mode, const ControlOptions& control) {
  if (mode == GuardMode::kNone) return;
  if (const std::string why = refusal(control); !why.empty())
    throw UsageError(std::string(owner) + ": guard=" + kGuardModes[static_cast<std::size_t>(mode)] + " " +
                     why + ", expected guard=none");
}

GuardMode guard_or_harmless(std::optional<GuardMode> asked, const ControlOptions& control) {
  if (asked) return *asked;
  const std::vector<CodecOptions> levels = control_levels("control", control, kAnyModel);
  const bool compresses = std::any_of(levels.begin(), levels.end(), [](const CodecOptions& level) {
    return !std::holds_alternative<NoneOptions>(level);
  });
  return compresses && refusal(control).empty() ? GuardMode::kHarmless : GuardMode::kNone;
}

}  // namespace accordion
