#include "accordion/engine/guard_choice.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "accordion/base/median.h"
#include "accordion/exchange/layer.h"

namespace accordion {
namespace {

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
};

// The first is dense, which is the mildest whatever others send.
const Candidate& best_of(const std::vector<Candidate>& candidates, perf::Goal goal) {
  const Candidate* best = &candidates[0];
  if (goal == perf::Goal::kHarmless) {
    for (const Candidate& each : candidates)
      if (each.seconds <= candidates[0].seconds && each.bytes < 0.99 * best->bytes) best = &each;
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

// Whether none of what was probed was better than dense.
bool none_shorter(const std::vector<Probed>& probed, double dense_seconds, perf::Goal goal) {
  const double margin = goal == perf::Goal::kFastest ? perf::kMilder : 1;
  return !probed.empty() && std::all_of(probed.begin(), probed.end(), [&](const Probed& each) {
    return margin * each.second >= dense_seconds;
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
                   double dense_seconds, perf::Goal goal, std::span<const std::string> names) {
  const Foreseen foreseen(costs, may);
  const std::vector<int> dense(may.size(), kDense);
  std::vector<double> longer = {dense_seconds / std::max(foreseen.seconds(dense), 1e-9)};
  for (const auto& [levels, seconds] : probed)
    longer.push_back(seconds / std::max(foreseen.seconds(levels), 1e-9));
  const double scale = *std::max_element(longer.begin(), longer.end());

  std::vector<Candidate> candidates = {{dense, dense_seconds, foreseen.bytes(dense)}};
  for (const auto& [levels, seconds] : probed)
    candidates.push_back({levels, seconds, foreseen.bytes(levels)});
  const perf::Choice found = perf::what_pays(foreseen.model(), goal);
  std::vector<int> levels = dense;
  for (std::size_t p = 0; p < found.levels.size(); ++p)
    levels[static_cast<std::size_t>(costs.tensors()[p])] = foreseen.in_effect(p, found.levels[p]);
  const bool was_probed = std::any_of(probed.begin(), probed.end(), [&](const Probed& each) {
    return foreseen.places(each.first) == foreseen.places(levels);
  });
  if (!was_probed && !all_dense(levels))
    candidates.push_back({levels, scale * found.seconds, found.wire_bytes});
  const Candidate& best = best_of(candidates, goal);
  return {best.levels, best.seconds,
          reasons(foreseen, costs, may, probed, best.levels, scale, dense_seconds, goal, names)};
}

GuardChoice choose_probed(std::span<const int> may, const std::vector<Probed>& probed, double dense_seconds,
                          perf::Goal goal, std::span<const std::string> names) {
  // Probed strongest first: with no bytes to compare, their order stands for these.
  std::vector<Candidate> candidates = {
      {std::vector<int>(may.size(), kDense), dense_seconds, static_cast<double>(probed.size())}};
  for (const auto& [levels, seconds] : probed)
    candidates.push_back({levels, seconds, static_cast<double>(candidates.size() - 1)});
  const Candidate& best = best_of(candidates, goal);
  std::vector<std::string> reasons(may.size(), "dense: steps are no shorter compressed");
  for (std::size_t i = 0; i < may.size(); ++i)
    if (const int level = best.levels[i]; level != kDense)
      reasons[i] = names[static_cast<std::size_t>(level)] + ": steps take " + ms_text(best.seconds) +
                   " instead of " + ms_text(dense_seconds) + " ms";
  return {best.levels, best.seconds, std::move(reasons)};
}

}  // namespace accordion
