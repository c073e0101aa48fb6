#include "bench/calibrate_codec.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "accordion/base/median.h"
#include "bench/digits.h"

namespace accordion::bench {
namespace {

// The line through (x, y), which neither falls nor starts below 0.
std::pair<double, double> line_through(std::span<const std::pair<double, double>> points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [a, b] : points) x += a / n, y += b / n;
  for (const auto& [a, b] : points) xx += (a - x) * (a - x), xy += (a - x) * (b - y);
  const double slope = xx > 0 ? std::max(0.0, xy / xx) : 0, start = y - slope * x;
  return start >= 0 ? std::pair(start, slope) : std::pair(0.0, y / x);
}

}  // namespace

perf::CodecProfile measure_codec(Communicator& control, const std::string& setting,
                                 const std::vector<TensorInfo>& tensors, const RealGradients& gradients,
                                 const CodecCalibration& calibration) {
  CodecTrial trial(parse_codec(setting), tensors, gradients, control.size(), calibration.threads);
  perf::CodecProfile profile{.codec = setting, .rounds = trial.messages(calibration.buckets)};
  profile.extra_memory_bytes_per_parameter =
      digits(trial.extra_bytes() / static_cast<double>(parameter_count(tensors)));
  const auto rounds = static_cast<std::size_t>(trial.rounds());
  if (rounds == 0) return profile;

  const std::vector<int> counts = {1, 2, 4, CodecTrial::kMostMessages};
  // By round: encoding, then decoding so many messages.
  std::vector<std::vector<double>> times(rounds * (1 + counts.size()));
  double spent = 0;
  for (int repetition = -1; repetition < 5 || (spent < calibration.seconds && repetition < 200);
       ++repetition) {
    std::vector<double> seconds;
    std::int8_t here = 0;
    control.sum(std::span(&here, 1));
    for (int i = 0; i < trial.rounds(); ++i) {
      seconds.push_back(trial.encode(i));
      for (const int count : counts)
        seconds.push_back(trial.gathers(i) || count == 1 ? trial.decode(i, count) : seconds.back());
    }
    trial.again();
    control.max(std::span(seconds));  // The same on all ranks from here, so they stop together.
    for (std::size_t i = 0; i < seconds.size(); ++i) spent += seconds[i];
    if (repetition < 0) continue;  // Pages and caches are warm from here.
    for (std::size_t i = 0; i < seconds.size(); ++i) times[i].push_back(seconds[i]);
  }

  std::vector<double> encode_ms, decode_ms;
  for (std::size_t i = 0; i < rounds; ++i) {
    const auto of = [&](std::size_t column) {
      return 1e3 * median_of(times[i * (1 + counts.size()) + column]).value;
    };
    encode_ms.push_back(of(0));
    profile.encode_ms += of(0);
    if (!trial.gathers(static_cast<int>(i))) {
      decode_ms.push_back(of(1));
      profile.decode_ms += of(1);
      continue;
    }
    std::vector<std::pair<double, double>> points;
    for (std::size_t k = 0; k < counts.size(); ++k) points.emplace_back(counts[k], of(1 + k));
    const auto [fixed, each] = line_through(points);
    decode_ms.push_back(fixed + each * control.size());
    profile.decode_ms += fixed;
    profile.decode_ms_per_message += each;
  }
  const double encode = profile.encode_ms,
               decode = profile.decode_ms + profile.decode_ms_per_message * control.size();
  std::size_t i = 0;
  for (perf::RoundProfile& round : profile.rounds) {
    if (round.encode_share || i == rounds) continue;  // Nothing to encode, or kinds that share a round.
    round.encode_share = encode > 0 ? digits(encode_ms[i] / encode, 3) : 0;
    round.decode_share = decode > 0 ? digits(decode_ms[i] / decode, 3) : 0;
    ++i;
  }
  profile.encode_ms = digits(profile.encode_ms);
  profile.decode_ms = digits(profile.decode_ms);
  profile.decode_ms_per_message = digits(profile.decode_ms_per_message);
  return profile;
}

}  // namespace accordion::bench
