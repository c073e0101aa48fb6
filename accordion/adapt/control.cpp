#include "accordion/adapt/control.h"

#include <algorithm>

#include "accordion/adapt/ladder.h"

namespace accordion {
namespace {

TakesLevels takes(const ControllerKind& kind, const ControlOptions& options) {
  return kind.batch == SetsBatch::kInstead && options.controls_batch() ? TakesLevels::kOne : kind.levels;
}

// "a, b or c": the controllers that are like that.
template <class Like>
std::string controllers_that(Like like) {
  std::vector<std::string> names;
  for (const ControllerKind& kind : controllers())
    if (like(kind)) names.push_back(kind.name);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
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

void check_batch(const std::string& verb, const ControllerKind& kind, const ControlOptions& options) {
  if (options.batch_mild == 0 && options.batch_strong == 0) {
    if (kind.batch == SetsBatch::kAlways)
      throw UsageError(verb + ": controller=" + kind.name + " expects batch-mild and batch-strong");
    return;
  }
  const std::string both = verb + ": batch-mild=" + std::to_string(options.batch_mild) +
                           ", batch-strong=" + std::to_string(options.batch_strong);
  if (kind.batch == SetsBatch::kNever)
    throw UsageError(
        both + " beside controller=" + kind.name + ", expected " +
        controllers_that([](const ControllerKind& other) { return other.batch != SetsBatch::kNever; }));
  if (options.batch_mild < 1 || options.batch_strong < options.batch_mild)
    throw UsageError(both + ", expected both, the strong one at least the mild one");
  if (options.window > 0)
    throw UsageError(both + " beside window=" + std::to_string(options.window) +
                     ", expected window=0: a batch size holds for whole epochs");
}

// Where batches are set instead of levels: who sets both.
std::string for_both(const ControllerKind& kind) {
  if (kind.batch != SetsBatch::kInstead) return "";
  return ", or controller=" + controllers_that([](const ControllerKind& other) {
           return other.batch == SetsBatch::kAlways && other.levels != TakesLevels::kOne;
         }) +
         " for both";
}

void check_named_levels(const std::string& verb, const ControllerKind& kind, const ControlOptions& options) {
  const std::string who = verb + ": controller=" + kind.name;
  const bool pair = !options.mild.empty() || !options.strong.empty(), list = !options.levels.empty();
  const bool codec = options.codec != "none";
  if (options.mild.empty() != options.strong.empty() || (pair && list))
    throw UsageError(who + " expects mild and strong, two codec settings, or levels=A;B;C");
  switch (takes(kind, options)) {
    case TakesLevels::kOne:
      if (pair || list)
        throw UsageError(who + (options.controls_batch() ? " with batch-mild" : "") +
                         " has one codec, expected codec instead of mild, strong and levels" +
                         for_both(kind));
      break;
    case TakesLevels::kOwn:
      if (pair || list || codec)
        throw UsageError(who + " makes its own levels, expected neither codec nor mild, strong and levels");
      break;
    case TakesLevels::kBetween:
    case TakesLevels::kLadder:
      if (!pair && !list) throw UsageError(who + " expects mild and strong, two codec settings");
      if (codec)
        throw UsageError(verb + ": codec=" + options.codec + " beside controller=" + kind.name +
                         ", expected mild and strong only");
      break;
    case TakesLevels::kFamily:
      if ((pair || list) == codec)
        throw UsageError(who + " expects a codec to choose settings of, or mild and strong, or levels=A;B;C");
      break;
  }
}

std::vector<CodecOptions> named_levels(std::string_view owner, const ControlOptions& options,
                                       std::size_t parameters) {
  const ControllerKind kind = find_controller(options.controller);
  const TakesLevels what = takes(kind, options);
  if (what == TakesLevels::kOne) return {parse_codec(options.codec)};
  if (what == TakesLevels::kOwn) {
    if (parameters == 0)
      throw UsageError(std::string(owner) + ": controller=" + kind.name +
                       " depends on the number of parameters, expected a run folder that records it");
    return kind.own_levels(options, parameters);
  }
  if (!options.levels.empty()) return parse_levels(options.levels);
  if (options.mild.empty()) return make_ladder(owner, parse_codec(options.codec));
  const CodecOptions mild = parse_codec(options.mild), strong = parse_codec(options.strong);
  if (what == TakesLevels::kBetween) return {mild, strong};
  return make_ladder(owner, mild, strong);
}

}  // namespace

void check_control(std::string_view owner, const ControlOptions& options) {
  check(owner, options);
  const ControllerKind kind = find_controller(options.controller);
  check_batch(std::string(owner), kind, options);
  check_named_levels(std::string(owner), kind, options);
  const auto levels = static_cast<int>(control_levels(owner, options, kAnyModel).size());
  const auto controller = kind.make(options, kAnyModel, levels);
  if (controller->needs().trials && options.norms == "aggregated")
    throw UsageError(std::string(owner) + ": norms=aggregated beside controller=" + kind.name +
                     ", expected local: what a level loses cannot be seen in what it let through");
}

std::vector<CodecOptions> control_levels(std::string_view owner, const ControlOptions& options,
                                         std::size_t parameters) {
  std::vector<CodecOptions> levels = named_levels(owner, options, parameters);
  check_levels(levels);
  if (options.published())
    for (CodecOptions& level : levels) level = as_published(level);
  return levels;
}

ControlOptions for_controller(ControlOptions options, const std::string& controller) {
  const ControllerKind kind = find_controller(controller);
  options.controller = controller;
  const bool named = !options.mild.empty() || !options.levels.empty();
  if (kind.batch == SetsBatch::kNever || (kind.batch == SetsBatch::kInstead && named))
    options.batch_mild = options.batch_strong = 0;
  const TakesLevels what = takes(kind, options);
  if (what == TakesLevels::kOne || what == TakesLevels::kOwn)
    options.mild = options.strong = options.levels = "";
  else if (what != TakesLevels::kFamily || named)
    options.codec = "none";
  if (what == TakesLevels::kOwn) options.codec = "none";
  return options;
}

std::unique_ptr<Controller> make_controller(const ControlOptions& options, std::size_t layers, int levels) {
  return find_controller(options.controller).make(options, layers, levels);
}

}  // namespace accordion
