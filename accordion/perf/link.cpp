#include "accordion/perf/link.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

namespace accordion::perf {
namespace {

// A tenth of a per cent off, nobody cares: below that, samples tell nothing about the number of lines.
constexpr double kIndifferent = 1e-3;
constexpr std::size_t kLeastSizesOfLine = 3;

// What took no time was not measured, and no network moves an exabyte. NaN is neither.
bool plausible(const Sample& sample) {
  return sample.bytes > 0 && sample.bytes < 1e18 && sample.seconds > 1e-9 && sample.seconds < 1e9;
}

double squared(double x) {
  return x * x;
}

// Of relative errors.
double error_of(const Cost& cost, std::span<const Sample> samples) {
  double error = 0;
  for (const Sample& sample : samples) error += squared(cost.seconds(sample.bytes) / sample.seconds - 1);
  return error;
}

// Least squares of relative errors, with neither parameter below 0.
Line line_through(std::span<const Sample> samples) {
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;
  for (const Sample& sample : samples) {
    const double weight = 1 / squared(sample.seconds);
    w += weight;
    wx += weight * sample.bytes;
    wxx += weight * squared(sample.bytes);
    wt += weight * sample.seconds;
    wxt += weight * sample.bytes * sample.seconds;
  }
  const Line flat{wt / w, 0}, steep{0, wxt / wxx};
  const double determinant = w * wxx - wx * wx;
  if (!(determinant > 1e-12 * w * wxx)) return flat;
  const Line free{(wxx * wt - wx * wxt) / determinant, (w * wxt - wx * wt) / determinant};
  if (free.seconds >= 0 && free.seconds_per_byte >= 0) return free;
  return error_of({.small = flat}, samples) < error_of({.small = steep}, samples) ? flat : steep;
}

Cost joined(const Line& small, Line large, double from) {
  large.seconds += std::max(0.0, small.at(from) - large.at(from));
  return {small, large, from};
}

// Where one line is enough, or samples too few to tell: nothing. `samples` are sorted.
std::optional<Cost> two_lines(std::span<const Sample> samples, double error_of_one) {
  std::vector<std::size_t> begins;  // Of each size.
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (i == 0 || samples[i].bytes > samples[i - 1].bytes) begins.push_back(i);
  std::optional<Cost> best;
  double least = error_of_one;
  for (std::size_t k = kLeastSizesOfLine; k + kLeastSizesOfLine <= begins.size(); ++k) {
    const Line small = line_through(samples.first(begins[k])),
               large = line_through(samples.subspan(begins[k]));
    const double crossing =
        (large.seconds - small.seconds) / (small.seconds_per_byte - large.seconds_per_byte);
    for (const double from : {samples[begins[k]].bytes, crossing}) {
      if (!(from > samples.front().bytes && from < samples.back().bytes)) continue;
      const Cost cost = joined(small, large, from);
      if (const double error = error_of(cost, samples); error < least) {
        least = error;
        best = cost;
      }
    }
  }
  // Schwarz's criterion: three parameters more, each counted twice, since the break is the best of many.
  const auto count = static_cast<double>(samples.size());
  const auto badness = [&](double error) { return count * std::log(error / count + squared(kIndifferent)); };
  if (best && badness(least) + 6 * std::log(count) >= badness(error_of_one)) best.reset();
  return best;
}

double r_squared_of(const Cost& cost, std::span<const Sample> samples) {
  double weights = 0, mean = 0, spread = 0;
  for (const Sample& sample : samples) {
    weights += 1 / squared(sample.seconds);
    mean += 1 / sample.seconds;
  }
  mean /= weights;
  for (const Sample& sample : samples) spread += squared(mean / sample.seconds - 1);
  const double error = error_of(cost, samples);
  return spread > 0 ? 1 - error / spread : error > 0 ? 0 : 1;
}

double median_seconds(std::vector<Sample> samples) {
  const auto shorter = [](const Sample& a, const Sample& b) { return a.seconds < b.seconds; };
  std::sort(samples.begin(), samples.end(), shorter);
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 ? samples[half].seconds : (samples[half - 1].seconds + samples[half].seconds) / 2;
}

}  // namespace

double wire_bytes(Collective collective, double bytes, int ranks) {
  switch (collective) {
    case Collective::kSum:
      return 2 * bytes * (ranks - 1) / ranks;
    case Collective::kGather:
      return bytes * (ranks - 1);
    case Collective::kScatter:
      return bytes;
  }
  return 0;
}

Fit fit_cost(std::span<const Sample> samples) {
  std::vector<Sample> usable;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(usable), plausible);
  if (usable.empty()) return {};
  std::sort(usable.begin(), usable.end(), [](const Sample& a, const Sample& b) { return a.bytes < b.bytes; });

  Fit fit{.samples = static_cast<int>(usable.size())};
  if (const double size = usable.front().bytes; usable.back().bytes == size) {
    const double seconds = median_seconds(usable);
    fit.cost = {{seconds, 0}, {0, seconds / size}, size};
  } else {
    fit.cost.small = line_through(usable);
    if (const auto two = two_lines(usable, error_of(fit.cost, usable))) fit.cost = *two;
  }
  fit.r_squared = r_squared_of(fit.cost, usable);
  return fit;
}

}  // namespace accordion::perf
