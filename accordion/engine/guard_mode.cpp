#include "accordion/engine/guard_mode.h"

#include <algorithm>

#include "accordion/adapt/control.h"
#include "accordion/base/error.h"

namespace accordion {
namespace {

// Why these cannot be guarded; empty: they can.
std::string refusal(const ControlOptions& control, bool foretold) {
  if (control.published())
    return "with parity=paper, which repeats the published code to the letter, expected guard=none";
  const std::vector<CodecOptions> levels = control_levels("control", control, kAnyModel);
  if (!foretold && traits_of(levels[0]).momentum)  // In all levels or in none.
    return "with a codec that keeps the optimizer's momentum, which cannot change sides in mid-run, expected "
           "guard=none, or with accordion train profile=FILE, to decide by before the first step";
  return "";
}

}  // namespace

void check_guard(std::string_view owner, GuardMode mode, const ControlOptions& control, bool foretold) {
  if (mode == GuardMode::kNone) return;
  if (const std::string why = refusal(control, foretold); !why.empty())
    throw UsageError(std::string(owner) + ": guard=" + kGuardModes[static_cast<std::size_t>(mode)] + " " +
                     why);
}

GuardMode guard_or_harmless(std::optional<GuardMode> asked, const ControlOptions& control, bool foretold) {
  if (asked) return *asked;
  const std::vector<CodecOptions> levels = control_levels("control", control, kAnyModel);
  const bool compresses = std::any_of(levels.begin(), levels.end(), [](const CodecOptions& level) {
    return !std::holds_alternative<NoneOptions>(level);
  });
  return compresses && refusal(control, foretold).empty() ? GuardMode::kHarmless : GuardMode::kNone;
}

}  // namespace accordion
