#include "accordion/perf/search.h"

#include <algorithm>
#include <utility>

#include "accordion/base/hash.h"

namespace accordion::perf {
namespace {

// Rounding is no improvement, and would let a walk go in circles.
constexpr double kNoticeable = 1e-12;
// Of a bucket, as compared with adding a layer to it or serving it.
constexpr std::int64_t kPrice = 8;

bool noticeably_less(double a, double b) {
  return a < b - kNoticeable * std::max(a, b);
}

double dense_bytes(const LayerModel& layer) {
  double bytes = 0;
  for (const LayerRound& round : layer.dense.rounds) bytes += round.bytes;
  return bytes;
}

}  // namespace

Search::Search(const StepModel& model)
    : model_(model),
      members_(model.ready.size()),
      by_size_(model.ready.size()),
      levels_(model.layers.size(), kDense),
      costs_(model.ready.size()) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerModel& layer = model.layers[i];
    const auto bucket = static_cast<std::size_t>(layer.bucket);
    members_[bucket].push_back(i);
    if (layer.levels.empty()) continue;
    free_.push_back(i);
    by_size_[bucket].push_back(i);
    strongest_ = std::max(strongest_, static_cast<int>(layer.levels.size()) - 1);
  }
  for (std::vector<std::size_t>& layers : by_size_)
    std::stable_sort(layers.begin(), layers.end(), [&](std::size_t a, std::size_t b) {
      return dense_bytes(model.layers[a]) > dense_bytes(model.layers[b]);
    });
  load_all();
}

bool Search::held(std::size_t layer) const {
  return std::find(held_.begin(), held_.end(), layer) != held_.end();
}

int Search::clamped(std::size_t layer, int level) const {
  return std::min(level, static_cast<int>(model_.layers[layer].levels.size()) - 1);
}

void Search::start(int level) {
  for (std::size_t i = 0; i < levels_.size(); ++i) levels_[i] = clamped(i, level);
  load_all();
}

void Search::start(const std::vector<int>& levels) {
  levels_ = levels;
  load_all();
}

void Search::load(std::size_t bucket) {
  BucketLoad load;
  for (const std::size_t i : members_[bucket]) load.add(model_.layers[i], levels_[i]);
  costs_[bucket] = cost_of(load, model_.link, model_.ranks);
}

void Search::load_all() {
  for (std::size_t b = 0; b < costs_.size(); ++b) load(b);
  score_ = evaluate();
}

Score Search::evaluate() const {
  Score score{.seconds = step_seconds(model_, costs_)};
  for (const BucketCost& cost : costs_) score.wire_bytes += cost.wire_bytes;
  return score;
}

bool Search::better(const Score& a, const Score& b, const Aim& aim) const {
  if (aim.seconds_per_byte > 0)
    return noticeably_less(a.seconds + aim.seconds_per_byte * a.wire_bytes,
                           b.seconds + aim.seconds_per_byte * b.wire_bytes);
  const double beyond_a = std::max(a.seconds, aim.limit), beyond_b = std::max(b.seconds, aim.limit);
  if (noticeably_less(beyond_a, beyond_b)) return true;
  if (beyond_a > beyond_b) return false;
  return aim.least_traffic ? noticeably_less(a.wire_bytes, b.wire_bytes)
                           : noticeably_less(b.wire_bytes, a.wire_bytes);
}

bool Search::attempt(const std::vector<Change>& changes, const Aim& aim) {
  undo_.clear();
  touched_.clear();
  for (const Change& change : changes) {
    if (levels_[change.layer] == change.level || held(change.layer)) continue;
    undo_.push_back({change.layer, levels_[change.layer]});
    levels_[change.layer] = change.level;
    const auto bucket = static_cast<std::size_t>(model_.layers[change.layer].bucket);
    if (touched_.empty() || touched_.back() != bucket) touched_.push_back(bucket);
  }
  if (undo_.empty() || exhausted()) {
    for (const Change& change : undo_) levels_[change.layer] = change.level;
    return false;
  }
  before_.clear();
  for (const std::size_t bucket : touched_) {
    before_.push_back(costs_[bucket]);
    load(bucket);
    left_ -= static_cast<std::int64_t>(members_[bucket].size()) + kPrice;
  }
  left_ -= static_cast<std::int64_t>(costs_.size());
  if (const Score score = evaluate(); better(score, score_, aim)) {
    score_ = score;
    return true;
  }
  for (const Change& change : undo_) levels_[change.layer] = change.level;
  for (std::size_t i = touched_.size(); i-- > 0;) costs_[touched_[i]] = before_[i];
  return false;
}

bool Search::improve_layers(const Aim& aim) {
  bool improved = false;
  for (const std::size_t i : free_)
    for (int level = clamped(i, strongest_); level >= kDense; --level) {
      changes_.assign(1, {i, level});
      improved |= attempt(changes_, aim);
    }
  return improved;
}

// A kind of collective that only one layer uses costs a call of its own, so layers change together: the largest of a bucket,
// down to each size.
bool Search::improve_buckets(const Aim& aim) {
  bool improved = false;
  for (int level = strongest_; level >= kDense; --level) {
    for (const std::vector<std::size_t>& layers : by_size_) {
      changes_.clear();
      for (const std::size_t i : layers) {
        changes_.push_back({i, clamped(i, level)});
        improved |= attempt(changes_, aim);
      }
    }
    changes_.clear();
    for (const std::size_t i : free_) changes_.push_back({i, clamped(i, level)});
    improved |= attempt(changes_, aim);
  }
  return improved;
}

void Search::descend(const Aim& aim) {
  walk(aim);
  if (std::exchange(held_, {}).empty()) return;
  walk(aim);
}

void Search::walk(const Aim& aim) {
  while (improve_layers(aim) || improve_buckets(aim))
    if (exhausted()) return;
}

std::uint64_t Search::random() {
  return random_ = mix(random_);
}

void Search::kick(int layers) {
  if (free_.empty()) return;
  for (int k = 0; k < layers; ++k) {
    const std::size_t i = free_[random() % free_.size()];
    levels_[i] = static_cast<int>(random() % (model_.layers[i].levels.size() + 1)) - 1;
    held_.push_back(i);
  }
  // What is tried first is taken first: another order settles elsewhere.
  for (std::size_t i = free_.size(); i > 1; --i) std::swap(free_[i - 1], free_[random() % i]);
  load_all();
}

}  // namespace accordion::perf
