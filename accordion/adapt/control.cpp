#include "accordion/adapt/control.h"

#include <cmath>

#include "accordion/adapt/ladder.h"

namespace accordion {
namespace {

// How a controller's levels are named.
enum class Takes { kCodec, kPair, kLadder, kFamily, kNothing };

Takes takes(const ControlOptions& options) {
  const std::string& name = options.controller;
  if (name == "static" || name == "smith") return Takes::kCodec;
  if (name == "rethink") return Takes::kNothing;
  if (name == "auto") return Takes::kFamily;
  if (name == "adaqs" || name == "lgreco") return Takes::kLadder;
  // Accordion with a batch size to control leaves the codec alone.
  if (name == "accordion" && options.controls_batch()) return Takes::kCodec;
  return Takes::kPair;
}

std::vector<CodecOptions> parse_levels(std::string_view text) {
  std::vector<CodecOptions> levels;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    levels.push_back(parse_codec(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return levels;
}

void check_batch(const std::string& verb, const ControlOptions& options) {
  const bool can =
      options.controller == "accordion" || options.controller == "joint" || options.controller == "smith";
  const bool must = can && options.controller != "accordion";
  if (options.batch_mild == 0 && options.batch_strong == 0) {
    if (must)
      throw UsageError(verb + ": controller=" + options.controller + " expects batch-mild and batch-strong");
    return;
  }
  const std::string both = verb + ": batch-mild=" + std::to_string(options.batch_mild) +
                           ", batch-strong=" + std::to_string(options.batch_strong);
  if (!can)
    throw UsageError(both + " beside controller=" + options.controller +
                     ", expected accordion, joint or smith");
  if (options.batch_mild < 1 || options.batch_strong < options.batch_mild)
    throw UsageError(both + ", expected both, the strong one at least the mild one");
  if (options.window > 0)
    throw UsageError(both + " beside window=" + std::to_string(options.window) +
                     ", expected window=0: a batch size holds for whole epochs");
}

void check_named_levels(const std::string& verb, const ControlOptions& options) {
  const std::string who = verb + ": controller=" + options.controller;
  const bool pair = !options.mild.empty() || !options.strong.empty(), list = !options.levels.empty();
  const bool codec = options.codec != "none";
  if (options.mild.empty() != options.strong.empty() || (pair && list))
    throw UsageError(who + " expects mild and strong, two codec settings, or levels=A;B;C");
  switch (takes(options)) {
    case Takes::kCodec:
      if (pair || list)
        throw UsageError(who + (options.controls_batch() ? " with batch-mild" : "") +
                         " has one codec, expected codec instead of mild, strong and levels" +
                         (options.controller == "accordion" ? ", or controller=joint for both" : ""));
      break;
    case Takes::kNothing:
      if (pair || list || codec)
        throw UsageError(who + " makes its own level, threshold:lambda=...; expected density only");
      break;
    case Takes::kPair:
    case Takes::kLadder:
      if (!pair && !list) throw UsageError(who + " expects mild and strong, two codec settings");
      if (codec)
        throw UsageError(verb + ": codec=" + options.codec + " beside controller=" + options.controller +
                         ", expected mild and strong only");
      break;
    case Takes::kFamily:
      if ((pair || list) == codec)
        throw UsageError(who + " expects a codec to choose settings of, or mild and strong, or levels=A;B;C");
      break;
  }
}

std::vector<CodecOptions> named_levels(std::string_view owner, const ControlOptions& options,
                                       std::size_t parameters) {
  const Takes what = takes(options);
  if (what == Takes::kCodec) return {parse_codec(options.codec)};
  if (what == Takes::kNothing) {
    if (parameters == 0)
      throw UsageError(std::string(owner) + ": controller=" + options.controller +
                       " depends on the number of parameters, expected a run folder that records it");
    const double sent = options.density * static_cast<double>(parameters);
    return {ThresholdOptions{.lambda = 1 / (2 * std::sqrt(sent))}};
  }
  if (!options.levels.empty()) return parse_levels(options.levels);
  if (options.mild.empty()) return make_ladder(owner, parse_codec(options.codec));
  const CodecOptions mild = parse_codec(options.mild), strong = parse_codec(options.strong);
  if (what == Takes::kPair) return {mild, strong};
  return make_ladder(owner, mild, strong);
}

}  // namespace

void check_control(std::string_view owner, const ControlOptions& options) {
  check(owner, options);
  check_batch(std::string(owner), options);
  check_named_levels(std::string(owner), options);
  const auto levels = static_cast<int>(control_levels(owner, options, kAnyModel).size());
  if (options.controller == "schedule") parse_plan(options.plan, levels);
  if ((options.controller == "lgreco" || options.controller == "auto") && options.norms == "aggregated")
    throw UsageError(std::string(owner) + ": norms=aggregated beside controller=" + options.controller +
                     ", expected local: what a level loses cannot be seen in what it let through");
  if (options.controller == "lgreco" && options.uniform >= levels)
    throw UsageError(std::string(owner) + ": uniform=" + std::to_string(options.uniform) +
                     ", expected a level from 0 to " + std::to_string(levels - 1));
}

std::vector<CodecOptions> control_levels(std::string_view owner, const ControlOptions& options,
                                         std::size_t parameters) {
  std::vector<CodecOptions> levels = named_levels(owner, options, parameters);
  check_levels(levels);
  if (options.published())
    for (CodecOptions& level : levels) level = as_published(level);
  return levels;
}

std::unique_ptr<Controller> make_controller(const ControlOptions& options, std::size_t layers, int levels) {
  const std::string unit = options.window > 0 ? "window" : "epoch";
  const AccordionRule rule{.interval = options.interval,
                           .threshold = options.threshold,
                           .min_decay = options.min_decay,
                           .hold = options.hold,
                           .published = options.published(),
                           .unit = unit};
  const BatchRange batch{options.batch_mild, options.batch_strong};
  const std::string& name = options.controller;
  if (name == "accordion")
    return options.controls_batch() ? make_accordion_batch(rule, batch, layers)
                                    : make_accordion(rule, layers, levels);
  if (name == "joint") return make_joint(rule, batch, layers, levels);
  if (name == "auto") return make_auto(rule, options.tolerance, layers);
  if (name == "adaqs") return make_adaqs(options.threshold, layers, levels);
  if (name == "lgreco")
    return make_lgreco(
        {.uniform = options.uniform < 0 ? levels / 2 : options.uniform, .resolution = options.resolution},
        layers);
  if (name == "smith") return make_smith(batch, layers);
  if (name == "schedule") {
    Schedule schedule = parse_plan(options.plan, levels);
    schedule.unit = unit;
    return make_schedule(schedule, layers);
  }
  return make_static(layers);
}

}  // namespace accordion
