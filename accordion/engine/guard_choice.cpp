#include "accordion/engine/guard_choice.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "accordion/base/median.h"
#include "accordion/exchange/layer.h"

namespace accordion {
namespace {

// Times as long as dense, as foreseen: near enough to be tried out.
constexpr double kNearDense = 1.05;

std::string ms_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 0.01 ? "%.2f" : seconds < 0.1 ? "%.1f" : "%.0f", 1e3 * seconds);
  return text;
}

// A step's model, asked about levels by tensor.
class Foreseen {
 public:
  Foreseen(const StepCosts& costs, std::span<const int> may) : costs_(costs), model_(costs.model(may)) {}

  const perf::StepModel& model() const { return model_; }

  // Levels that leave a layer dense are one and the same.
  std::vector<int> places(const std::vector<int>& levels) const {
    std::vector<int> places;
    for (std::size_t p = 0; p < model_.layers.size(); ++p)
      places.push_back(in_effect(p, levels[static_cast<std::size_t>(costs_.tensors()[p])]));
    return places;
  }
  int in_effect(std::size_t place, int level) const {
    const perf::LayerModel& layer = model_.layers[place];
    return layer.levels.empty() || layer.goes_dense(level) ? kDense : level;
  }
  double seconds(const std::vector<int>& levels) const { return perf::step_seconds(model_, places(levels)); }
  double bytes(const std::vector<int>& levels) const {
    return perf::simulate(model_, places(levels)).wire_bytes;
  }

 private:
  const StepCosts& costs_;
  perf::StepModel model_;
};

// What could be in force.
struct Candidate {
  std::vector<int> levels;
  double seconds, bytes;
  bool harmless;
  bool probed = true;
};

// The first is dense, which is the mildest whatever others send.
const Candidate& best_of(const std::vector<Candidate>& candidates, perf::Goal goal) {
  const Candidate* best = &candidates[0];
  if (goal == perf::Goal::kHarmless) {
    for (const Candidate& each : candidates)
      if (each.harmless && each.bytes < 0.99 * best->bytes) best = &each;
    return *best;
  }
  double limit = best->seconds;
  for (const Candidate& each : candidates) limit = std::min(limit, each.seconds);
  limit *= perf::kMilder;
  if (best->seconds <= limit) return *best;
  for (const Candidate& each : candidates)
    if (each.seconds <= limit && (best->seconds > limit || each.bytes > best->bytes)) best = &each;
  return *best;
}

// Whether no layer has a stronger level than it may.
bool is_allowed(const std::vector<int>& levels, std::span<const int> may) {
  return std::equal(levels.begin(), levels.end(), may.begin(),
                    [](int level, int most) { return level <= most; });
}

// Whether none of what was probed was better than dense.
bool none_shorter(const std::vector<Probed>& probed, double dense_seconds, perf::Goal goal) {
  const double margin = goal == perf::Goal::kFastest ? perf::kMilder : 1;
  return !probed.empty() && std::all_of(probed.begin(), probed.end(), [&](const Probed& each) {
    return goal == perf::Goal::kHarmless ? !each.harmless : margin * each.seconds >= dense_seconds;
  });
}

// Each layer's level, by what it would be to have it otherwise. `scale`: of measured seconds to simulated ones.
std::vector<std::string> reasons(const Foreseen& foreseen, const StepCosts& costs, std::span<const int> may,
                                 const std::vector<Probed>& probed, const std::vector<int>& chosen,
                                 double scale, double dense_seconds, perf::Goal goal,
                                 std::span<const std::string> names) {
  std::vector<std::string> reasons(may.size());
  std::vector<int> levels = chosen;
  const double seconds = foreseen.seconds(levels);
  const bool fastest = goal == perf::Goal::kFastest;
  const bool tried = all_dense(chosen) && none_shorter(probed, dense_seconds, goal);
  const std::string of = " of " + ms_text(dense_seconds) + " ms";
  for (std::size_t p = 0; p < costs.tensors().size(); ++p) {
    const auto tensor = static_cast<std::size_t>(costs.tensors()[p]);
    const int level = chosen[tensor];
    std::string& reason = reasons[tensor];
    if (foreseen.model().layers[p].levels.empty() || foreseen.in_effect(p, level) != level) {
      reason = "not worth compressing";
      continue;
    }
    levels[tensor] = level == kDense ? may[tensor] : kDense;
    const double gain = scale * (foreseen.seconds(levels) - seconds);
    levels[tensor] = level;
    const bool shorter = gain > 1e-3 * dense_seconds, longer = gain < -1e-3 * dense_seconds;
    if (level != kDense)
      reason = names[static_cast<std::size_t>(level)] + ": " +
               (shorter  ? "saves " + ms_text(gain) + of
                : longer ? "saves traffic, for " + ms_text(-gain) + of
                         : "saves traffic at no cost");
    else if (shorter)
      reason = "dense: compressing it would cost " + ms_text(gain) + of;
    else if (tried && (longer || !fastest))  // Whatever is foreseen.
      reason = "dense: compressed steps were no shorter";
    else if (longer)
      reason =
          fastest ? "dense: compressing it would save less than 1 %" : "dense: it sends no less compressed";
    else
      reason = "dense: hidden behind backward";
  }
  return reasons;
}

}  // namespace

std::vector<std::string> level_names(std::span<const CodecOptions> levels) {
  if (levels.size() == 2) return {"mild", "strong"};
  std::vector<std::string> names;
  for (const CodecOptions& level : levels) names.push_back(codec_text(level));
  return names;
}

GuardChoice choose(const StepCosts& costs, std::span<const int> may, const std::vector<Probed>& probed,
                   double dense_seconds, perf::Goal goal, std::span<const std::string> names, bool search) {
  const Foreseen foreseen(costs, may);
  const std::vector<int> dense(may.size(), kDense);
  // What was stronger than may be now still says how far to trust the parts.
  std::vector<int> most(may.begin(), may.end());
  for (const Probed& each : probed)
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], each.levels[i]);
  const Foreseen all(costs, most);
  double scale = dense_seconds / std::max(all.seconds(dense), 1e-9);
  for (const Probed& each : probed)
    scale = std::max(scale, each.seconds / std::max(all.seconds(each.levels), 1e-9));

  std::vector<Candidate> candidates = {{dense, dense_seconds, foreseen.bytes(dense), true}};
  for (const Probed& each : probed)
    if (is_allowed(each.levels, may))
      candidates.push_back({each.levels, each.seconds, foreseen.bytes(each.levels), each.harmless});
  if (search) {
    const perf::Choice found = perf::what_pays(foreseen.model(), goal);
    std::vector<int> levels = dense;
    for (std::size_t p = 0; p < found.levels.size(); ++p)
      levels[static_cast<std::size_t>(costs.tensors()[p])] = foreseen.in_effect(p, found.levels[p]);
    const bool was_probed = std::any_of(probed.begin(), probed.end(), [&](const Probed& each) {
      return is_allowed(each.levels, may) && foreseen.places(each.levels) == foreseen.places(levels);
    });
    const double seconds = scale * found.seconds;
    if (!was_probed && !all_dense(levels))
      candidates.push_back({levels, seconds, found.wire_bytes, seconds <= kNearDense * dense_seconds, false});
  }
  const Candidate& best = best_of(candidates, goal);
  return {best.levels, best.seconds,
          reasons(foreseen, costs, may, probed, best.levels, scale, dense_seconds, goal, names),
          foreseen.seconds(best.levels), !best.probed && best.seconds > kClearlyShorter * dense_seconds};
}

GuardChoice choose_probed(std::span<const int> may, const std::vector<Probed>& probed, double dense_seconds,
                          perf::Goal goal, std::span<const std::string> names) {
  // Probed strongest first: with no bytes to compare, their order stands for these.
  std::vector<Candidate> candidates = {
      {std::vector<int>(may.size(), kDense), dense_seconds, static_cast<double>(probed.size()), true}};
  for (const Probed& each : probed)
    if (is_allowed(each.levels, may))
      candidates.push_back(
          {each.levels, each.seconds, static_cast<double>(candidates.size() - 1), each.harmless});
  const Candidate& best = best_of(candidates, goal);
  std::vector<std::string> reasons(may.size(), "dense: steps are no shorter compressed");
  for (std::size_t i = 0; i < may.size(); ++i)
    if (const int level = best.levels[i]; level != kDense)
      reasons[i] = names[static_cast<std::size_t>(level)] + ": steps take " + ms_text(best.seconds) +
                   " instead of " + ms_text(dense_seconds) + " ms";
  return {best.levels, best.seconds, std::move(reasons), best.seconds, false};
}

}  // namespace accordion
