#include "accordion/perf/advice.h"

#include <algorithm>
#include <cmath>

#include "accordion/base/error.h"
#include "accordion/perf/published.h"
#include "accordion/perf/verdict.h"

namespace accordion::perf {
namespace {

bool wins(double step, double plain) {
  return step < kWorthIt * plain;
}

published::Network published_network(const Case& it, double gbps) {
  const NetworkProfile& network = it.profile.network;
  const CollectiveProfile& ring = network.dense ? *network.dense : network[Collective::kSum];
  return {ring.piece.latency_us * 1e-6, ring.piece.bandwidth_gbps * gbps / network.bandwidth_gbps * 1e9 / 8};
}

published::Training published_training(const Case& it) {
  return {.gradient_bytes = static_cast<double>(it.model.parameters) * sizeof(float),
          .backward = it.model.backward_ms * 1e-3,
          .slowdown = it.model.slowdown};
}

// The published model has sums and gathers only: a scatter moves what a gather of its pieces would.
published::Method published_method(const Case& it, const CodecProfile& codec, int workers) {
  published::Method method{.encode_decode = (codec.encode_ms + codec.decode_ms) * 1e-3,
                           .decode_per_worker = codec.decode_ms_per_message * 1e-3};
  for (const RoundProfile& round : codec.rounds) {
    const double bytes = bytes_at(round, it.profile.network.ranks, workers);
    if (round.collective == Collective::kSum)
      method.summed.push_back(bytes);
    else
      method.gathered.push_back(round.collective == Collective::kGather ? bytes : bytes / (workers - 1));
  }
  return method;
}

Prediction predict_published(const Case& it, std::string_view name, int workers, double gbps) {
  const published::Training training = published_training(it);
  const published::Network network = published_network(it, gbps);
  Prediction prediction{.method = std::string(name)};
  if (name == kPlain) {
    prediction.step = published::plain_seconds(training, workers, network);
    prediction.backward = training.backward * (training.buckets() == 1 ? 1 : training.slowdown);
  } else {
    const CodecProfile& codec = find_codec(it.model, name);
    prediction.step =
        published::method_seconds(published_method(it, codec, workers), training, workers, network);
    prediction.backward = training.backward;
    prediction.encoding = codec.encode_ms * 1e-3;
    prediction.decoding = (codec.decode_ms + codec.decode_ms_per_message * workers) * 1e-3;
  }
  prediction.communication =
      prediction.step - prediction.backward - prediction.encoding - prediction.decoding;
  return prediction;
}

Prediction predict_overlapped(const Case& it, std::string_view name, int workers, double gbps) {
  const StepModel model = step_model(it.profile, it.model, name, workers, gbps);
  const Timeline timeline =
      simulate(model, std::vector<int>(model.layers.size(), name == kPlain ? kDense : 0));
  return {.method = std::string(name),
          .step = timeline.seconds,
          .backward = timeline.backward,
          .encoding = timeline.encoding,
          .communication = timeline.communication,
          .decoding = timeline.decoding,
          .rest = model.rest};
}

// Searches ask for this alone.
double step_of(const Case& it, std::string_view method, int workers, double gbps) {
  if (it.published) return predict_published(it, method, workers, gbps).step;
  const StepModel model = step_model(it.profile, it.model, method, workers, gbps);
  return step_seconds(model, std::vector<int>(model.layers.size(), method == kPlain ? kDense : 0));
}

// With gradients so many times smaller, at no cost.
double step_at_ratio(const Case& it, double ratio, int workers, double gbps) {
  StepModel model = step_model(it.profile, it.model, kPlain, workers, gbps);
  for (LayerModel& layer : model.layers)
    for (LayerRound& round : layer.dense.rounds) round.bytes /= ratio;
  return step_seconds(model, std::vector<int>(model.layers.size(), kDense));
}

std::optional<double> near_linear_ratio(const Case& it, int workers, double gbps) {
  if (it.published) {
    const published::Training training = published_training(it);
    const published::Method free{.summed = {0}};
    if (published::plain_seconds(training, workers, published_network(it, gbps)) <=
        kNearLinear * training.backward)
      return 1;
    const auto ratio = published::needed_ratio(free, training, workers, published_network(it, gbps),
                                               kNearLinear * training.backward);
    return ratio ? std::optional(std::max(1.0, *ratio)) : std::nullopt;
  }
  const double target = kNearLinear * (it.model.backward_ms + it.model.rest_ms) * 1e-3;
  constexpr Range kRatios{1, 1e6};
  const auto beyond = [&](double ratio) { return step_at_ratio(it, ratio, workers, gbps) - target; };
  if (beyond(kRatios.low) <= 0) return 1;
  if (beyond(kRatios.high) > 0) return std::nullopt;
  return turning_points(beyond, kRatios).front();
}

std::optional<int> most_winning_workers(const Case& it, std::string_view method, double gbps) {
  for (int workers = kMostWorkers; workers >= 2; --workers)
    if (wins(step_of(it, method, workers, gbps), step_of(it, kPlain, workers, gbps))) return workers;
  return std::nullopt;
}

// What a rank sends to all others, who each keep it until it is decoded.
double gathered_of_one(const Case& it, std::string_view method) {
  double bytes = 0;
  if (method != kPlain)
    for (const RoundProfile& round : find_codec(it.model, method).rounds)
      if (round.collective == Collective::kGather && !round.split) bytes += round.bytes;
  return bytes;
}

std::optional<int> most_fitting_workers(const Case& it, std::string_view method) {
  const double of_one = gathered_of_one(it, method);
  if (!it.profile.memory_gb || of_one == 0) return std::nullopt;
  return static_cast<int>(std::min(1e9, *it.profile.memory_gb * 1e9 / of_one));
}

bool fits(const Case& it, std::string_view method, int workers) {
  const auto most = most_fitting_workers(it, method);
  return !most || workers <= *most;
}

// What is the same at every bandwidth.
MethodAdvice advice_at(const Case& it, std::string_view name, int workers) {
  MethodAdvice advice;
  if (name == kPlain) return advice;
  advice.break_even = break_even_gbps(it, name, workers);
  advice.wins_on_slowest = wins(step_of(it, name, workers, kBandwidthsAsked.low),
                                step_of(it, kPlain, workers, kBandwidthsAsked.low));
  advice.extra_memory_bytes_per_parameter = find_codec(it.model, name).extra_memory_bytes_per_parameter;
  advice.gathered_bytes = gathered_of_one(it, name) * workers;
  advice.fits_up_to = most_fitting_workers(it, name);
  advice.fits = fits(it, name, workers);
  return advice;
}

}  // namespace

Prediction predict(const Case& it, std::string_view method, int workers, double gbps) {
  return (it.published ? predict_published : predict_overlapped)(it, method, workers, gbps);
}

std::vector<std::string> methods(const Case& it) {
  std::vector<std::string> names{std::string(kPlain)};
  for (const CodecProfile& codec : it.model.codecs)
    if (codec.codec != kPlain) names.push_back(codec.codec);
  return names;
}

std::vector<double> break_even_gbps(const Case& it, std::string_view method, int workers) {
  return turning_points(
      [&](double gbps) {
        return kWorthIt * step_of(it, kPlain, workers, gbps) - step_of(it, method, workers, gbps);
      },
      kBandwidthsAsked);
}

std::size_t best_of(const Case& it, std::span<const double> steps, int workers) {
  const std::vector<std::string> names = methods(it);
  std::size_t best = 0;
  for (std::size_t i = 1; i < steps.size(); ++i)
    if (steps[i] < steps[best] && wins(steps[i], steps[0]) && fits(it, names[i], workers)) best = i;
  return best;
}

Advice advise(const Case& it, int workers, double gbps) {
  return advise(it, std::span(&workers, 1), std::span(&gbps, 1)).front();
}

std::vector<Advice> advise(const Case& it, std::span<const int> workers, std::span<const double> gbps) {
  const std::vector<std::string> names = methods(it);
  // By bandwidth, then by method: the same with every number of workers.
  std::vector<std::vector<std::optional<int>>> wins_up_to(gbps.size());
  for (std::size_t g = 0; g < gbps.size(); ++g)
    for (const std::string& name : names)
      wins_up_to[g].push_back(name == kPlain ? std::nullopt : most_winning_workers(it, name, gbps[g]));
  std::vector<Advice> all;
  for (const int count : workers) {
    std::vector<MethodAdvice> known;
    for (const std::string& name : names) known.push_back(advice_at(it, name, count));
    for (std::size_t g = 0; g < gbps.size(); ++g) {
      Advice& advice = all.emplace_back(Advice{.workers = count, .gbps = gbps[g], .methods = known});
      std::vector<double> steps;
      for (std::size_t i = 0; i < names.size(); ++i) {
        MethodAdvice& method = advice.methods[i];
        method.predicted = predict(it, names[i], count, gbps[g]);
        steps.push_back(method.predicted.step);
        method.wins = wins(steps[i], steps[0]);
        method.wins_up_to = wins_up_to[g][i];
      }
      advice.best_method = best_of(it, steps, count);
      advice.needed_ratio = near_linear_ratio(it, count, gbps[g]);
      advice.verdict = verdict_of(advice);
    }
  }
  return all;
}

std::vector<Regime> regimes(const Case& it, int workers, Range gbps) {
  const std::vector<std::string> names = methods(it);
  const auto best_at = [&](double at) {
    std::vector<double> steps;
    for (const std::string& name : names) steps.push_back(step_of(it, name, workers, at));
    return names[best_of(it, steps, workers)];
  };
  constexpr int kPoints = 60;
  std::vector<Regime> result;
  double last = gbps.low;
  std::string best = best_at(gbps.low);
  result.push_back({gbps.low, gbps.high, best});
  for (const double at : log_grid(gbps, kPoints)) {
    const std::string now = best_at(at);
    if (now != best) {
      double low = last, high = at;
      while (high > low * 1.001) {
        const double middle = std::sqrt(low * high);
        (best_at(middle) == best ? low : high) = middle;
      }
      result.back().to_gbps = high;
      result.push_back({high, gbps.high, now});
      best = now;
    }
    last = at;
  }
  return result;
}

}  // namespace accordion::perf
