#include "accordion/adapt/control.h"

#include <charconv>

namespace accordion {
namespace {

constexpr int kMild = 0, kStrong = 1;

[[noreturn]] void refuse_plan(std::string_view text, std::string_view item) {
  throw UsageError("plan=" + std::string(text) + ": \"" + std::string(item) +
                   "\", expected mild or strong, or an interval like mild@0-20 before the last");
}

int parse_epoch(std::string_view digits, std::string_view text, std::string_view item) {
  int epoch = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), epoch);
  if (error != std::errc() || end != digits.data() + digits.size() || epoch < 0) refuse_plan(text, item);
  return epoch;
}

}  // namespace

Schedule parse_plan(std::string_view text) {
  // The published experiments of 300 epochs: the first 20, and the 10 after the first decay.
  if (text == "critical") return {{{0, 20, kMild}, {150, 160, kMild}}, kStrong, "plan=critical"};
  if (text == "inverse") return {{{0, 20, kStrong}, {150, 160, kStrong}}, kMild, "plan=inverse"};
  Schedule schedule;
  std::string_view rest = text;
  while (true) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const bool last = item.size() == rest.size();
    const std::string_view name = item.substr(0, item.find('@'));
    if (name != "mild" && name != "strong") refuse_plan(text, item);
    const int level = name == "mild" ? kMild : kStrong;
    if (last) {
      if (name.size() != item.size()) refuse_plan(text, item);
      schedule.otherwise = level;
      return schedule;
    }
    if (name.size() == item.size()) refuse_plan(text, item);
    const std::string_view epochs = item.substr(name.size() + 1);
    const auto dash = epochs.find('-');
    if (dash == std::string_view::npos) refuse_plan(text, item);
    const int begin = parse_epoch(epochs.substr(0, dash), text, item);
    const int end = parse_epoch(epochs.substr(dash + 1), text, item);
    if (end <= begin) refuse_plan(text, item);
    schedule.intervals.push_back({begin, end, level});
    rest = rest.substr(item.size() + 1);
  }
}

std::vector<CodecOptions> control_levels(std::string_view owner, const ControlOptions& options) {
  const std::string verb(owner);
  std::vector<CodecOptions> levels;
  if (options.controller == "static") {
    if (!options.mild.empty() || !options.strong.empty())
      throw UsageError(
          verb + ": mild and strong are for a controller, but controller=static; expected codec instead");
    levels = {parse_codec(options.codec)};
  } else {
    if (options.mild.empty() || options.strong.empty())
      throw UsageError(verb + ": controller=" + options.controller +
                       " expects mild and strong, two codec settings");
    if (options.codec != "none")
      throw UsageError(verb + ": codec=" + options.codec + " beside controller=" + options.controller +
                       ", expected mild and strong only");
    levels = {parse_codec(options.mild), parse_codec(options.strong)};
  }
  if (options.controller == "schedule") parse_plan(options.plan);
  check_levels(levels);
  if (options.published())
    for (CodecOptions& level : levels) level = as_published(level);
  return levels;
}

std::unique_ptr<Controller> make_controller(const ControlOptions& options, std::size_t layers) {
  if (options.controller == "static") return make_static(layers);
  if (options.controller == "schedule") return make_schedule(parse_plan(options.plan), layers);
  return make_accordion({.interval = options.interval,
                         .threshold = options.threshold,
                         .min_decay = options.min_decay,
                         .published = options.published()},
                        layers, 2);
}

}  // namespace accordion
