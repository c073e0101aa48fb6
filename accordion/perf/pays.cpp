// Iterated local search. Seconds and traffic at a price, for prices around the one at which the limit holds, give choices that
// a walk from layer to layer would not find; from the best of them, kicks and descents go on while work is allowed.
#include "accordion/perf/pays.h"

#include <algorithm>
#include <cmath>

#include "accordion/perf/search.h"

namespace accordion::perf {
namespace {

// Of a few nanoseconds each: layers added up, buckets served.
constexpr std::int64_t kWork = 1'000'000;
constexpr int kPrices = 6;
constexpr int kKicksALayer = 32;  // More find nothing in a small model.

struct Best {
  std::vector<int> levels;
  Score score;
};

class Pursuit {
 public:
  explicit Pursuit(const StepModel& model) : search_(model), dense_(search_.score()) { best_ = here(); }

  const Score& dense() const { return dense_; }
  const Best& best() const { return best_; }

  void towards(const Aim& aim, std::int64_t work) {
    search_.allow(work);
    const std::vector<Best> starts = by_promise(aim);
    from(starts[0], aim);
    if (aim.least_traffic) try_prices(aim);
    for (std::size_t i = 1; i < starts.size(); ++i) from(starts[i], aim);
    for (int k = 0; k < kKicksALayer * search_.free_layers() && !search_.exhausted(); ++k) {
      search_.start(best_.levels);
      search_.kick(1 + k % 4);
      settle(aim);
    }
  }

 private:
  Best here() const { return {search_.levels(), search_.score()}; }

  // The best so far, and all layers at one level. A large model leaves no work for all of them.
  std::vector<Best> by_promise(const Aim& aim) {
    std::vector<Best> starts{best_};
    for (int level = kDense; level <= search_.strongest(); ++level) {
      search_.start(level);
      starts.push_back(here());
    }
    std::stable_sort(starts.begin(), starts.end(),
                     [&](const Best& a, const Best& b) { return preferred(a.score, b.score, aim); });
    return starts;
  }

  void from(const Best& start, const Aim& aim) {
    search_.start(start.levels);
    settle(aim);
  }

  void settle(const Aim& aim) {
    search_.descend(aim);
    if (preferred(search_.score(), best_.score, aim)) best_ = here();
  }

  static bool preferred(const Score& a, const Score& b, const Aim& aim) {
    const double beyond_a = std::max(a.seconds, aim.limit), beyond_b = std::max(b.seconds, aim.limit);
    if (beyond_a != beyond_b) return beyond_a < beyond_b;
    return aim.least_traffic ? a.wire_bytes < b.wire_bytes : a.wire_bytes > b.wire_bytes;
  }

  void try_prices(const Aim& aim) {
    double low = 0, high = 100;  // Seconds of a dense step for a dense step's bytes.
    for (int k = 0; k < kPrices && !search_.exhausted(); ++k) {
      const double price = low > 0 ? std::sqrt(low * high) : high / 100;
      search_.start(best_.levels);
      search_.descend({.seconds_per_byte = price * dense_.seconds / std::max(1.0, dense_.wire_bytes)});
      (search_.score().seconds <= aim.limit ? low : high) = price;
      settle(aim);
    }
  }

  Search search_;
  Score dense_;
  Best best_;
};

}  // namespace

Choice what_pays(const StepModel& model, Goal goal) {
  Pursuit pursuit(model);
  const Score dense = pursuit.dense();
  if (goal == Goal::kHarmless) {
    pursuit.towards({.limit = dense.seconds, .least_traffic = true}, kWork);
  } else {
    pursuit.towards({.limit = 0}, kWork / 2);
    pursuit.towards({.limit = kMilder * pursuit.best().score.seconds}, kWork / 2);
  }
  const Best& best = pursuit.best();
  return {.levels = best.levels,
          .seconds = best.score.seconds,
          .wire_bytes = best.score.wire_bytes,
          .dense_seconds = dense.seconds,
          .dense_wire_bytes = dense.wire_bytes};
}

}  // namespace accordion::perf
