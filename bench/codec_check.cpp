#include "bench/codec_check.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <optional>

#include "accordion/base/error.h"

namespace accordion::bench {
namespace {

class Check {
 public:
  Check(const CodecOptions& codec, const TensorInfo& info, const GroupStep& group)
      : codec_(codec),
        momentum_(traits_of(codec).momentum),
        info_(info),
        ranks_(group.ranks),
        mean_(group.ranks[0].mean),
        n_(mean_.size()) {}

  void agreement() const {
    for (const RankStep& rank : ranks_)
      if (std::memcmp(rank.mean.data(), mean_.data(), n_ * sizeof(float)) != 0)
        fail("ranks 0 and " + std::to_string(&rank - ranks_.data()) + " decode different means");
    const bool silent = std::all_of(ranks_.begin(), ranks_.end(),
                                    [](const RankStep& rank) { return rank.payload_bytes == 0; });
    double energy = 0;
    for (const float value : mean_) energy += static_cast<double>(value) * value;
    if (!(energy > 0 || silent) || !std::isfinite(energy))
      fail("the mean's energy is " + number_text(energy));
  }

  // What was sent and what was kept make up what came in, and less is kept; `rounding` is that of the sum, relative.
  void conservation(double rounding) const {
    if (!keeps()) fail("loses what it does not send, and cannot be verified here");
    for (const RankStep& rank : ranks_) {
      double kept = 0, had = 0;
      for (std::size_t i = 0; i < n_; ++i) {
        kept += std::pow(rank.next[i], 2);
        had += std::pow(input(rank, i), 2);
      }
      if (rank.payload_bytes > 0 && !(kept < had))
        fail("the residual's energy " + number_text(kept) + " is not below " + number_text(had));
    }
    balance(rounding);
  }

  void balance(double rounding) const {
    std::vector<double> kept(n_);
    for (const RankStep& rank : ranks_)
      for (std::size_t i = 0; i < n_; ++i) kept[i] += rank.next[i] / static_cast<double>(kRanks);
    compare("mean and residuals", rounding, [&](std::size_t i) { return mean_[i] + kept[i]; });
  }

  bool keeps() const { return !ranks_[0].next.empty(); }

  // What is not sent is no larger than what is.
  void largest() const {
    for (const RankStep& rank : ranks_) {
      double sent = INFINITY, kept = 0;
      for (std::size_t i = 0; i < n_; ++i) {
        if (rank.next[i] != 0)
          kept = std::max(kept, std::abs(static_cast<double>(rank.next[i])));
        else if (const double size = std::abs(input(rank, i)); size > 0)
          sent = std::min(sent, size);
      }
      if (sent < kept) fail("keeps " + number_text(kept) + " and sends " + number_text(sent));
    }
  }

  void rounding(double relative) const {
    compare("mean", relative, [&](std::size_t i) { return mean_[i]; });
  }

  void vote() const {
    for (std::size_t i = 0; i < n_; ++i) {
      int votes = 0;
      for (const RankStep& rank : ranks_) votes += input(rank, i) >= 0 ? 1 : -1;
      if (mean_[i] != static_cast<float>((votes > 0) - (votes < 0)))
        fail("entry " + std::to_string(i) + " is " + number_text(mean_[i]) + " with " +
             std::to_string(votes) + " votes over");
    }
  }

  // Each of k entries is n / k times its mean, all others 0.
  void scaled_sample() const {
    const auto k =
        static_cast<double>(std::count_if(mean_.begin(), mean_.end(), [](float x) { return x != 0; }));
    compare("mean", 1e-5,
            [&](std::size_t i) { return mean_[i] == 0 ? exact(i) : mean_[i] * k / static_cast<double>(n_); });
  }

  // Every rank rounds an entry at random to one of two levels `unit(rank, i)` apart, after clipping to
  // `limit(rank)`: the error is at most a unit, and over all entries it averages out.
  template <class Unit, class Limit>
  void unbiased(Unit unit, Limit limit) const {
    double errors = 0, variance = 0, energy = 0, along = 0, along_variance = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      double expected = 0, most = 0, spread = 0;
      for (const RankStep& rank : ranks_) {
        const double bound = limit(rank), u = unit(rank, i);
        expected += std::clamp(input(rank, i), -bound, bound) / kRanks;
        most += u / kRanks;
        spread += u * u / 4 / (kRanks * kRanks);
      }
      const double error = mean_[i] - expected;
      if (std::abs(error) > most * 1.0001)
        fail("entry " + std::to_string(i) + " is " + number_text(mean_[i]) + ", expected " +
             number_text(expected) + " to within " + number_text(most));
      errors += error;
      variance += spread;
      energy += error * error;
      along += error * expected;
      along_variance += spread * expected * expected;
    }
    // A shift shows in the sum of errors, a wrong scale in their product with what was expected.
    if (std::abs(errors) > 6 * std::sqrt(variance) || std::abs(along) > 6 * std::sqrt(along_variance))
      fail("the mean is biased: errors add up to " + number_text(errors) + " with a deviation of at most " +
           number_text(std::sqrt(variance)) + ", and times the input to " + number_text(along) + " with " +
           number_text(std::sqrt(along_variance)));
    if (energy > 1.2 * variance + 1e-30)
      fail("the error's energy " + number_text(energy) + " exceeds its bound " + number_text(variance));
  }

  // An unbiased sample of what varies much: it points where the input points.
  void direction() const {
    double along = 0, energy = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      along += mean_[i] * exact(i);
      energy += std::pow(exact(i), 2);
    }
    if (!(along > 0 && along < 8 * energy))
      fail("the mean times the input is " + number_text(along) + ", the input's energy " +
           number_text(energy));
  }

  double input(const RankStep& rank, std::size_t i) const {
    const double gradient = rank.gradient[i], residual = rank.residual.empty() ? 0 : rank.residual[i];
    if (!momentum_) return gradient + residual;
    const double u = momentum_->factor * (rank.momentum[i] + (momentum_->nesterov ? gradient : 0));
    return residual + u + gradient;
  }

  double largest_of(const RankStep& rank, std::size_t begin, std::size_t end) const {
    double largest = 0;
    for (std::size_t i = begin; i < std::min(n_, end); ++i)
      largest = std::max(largest, std::abs(input(rank, i)));
    return largest;
  }

  std::size_t size() const { return n_; }
  const std::vector<RankStep>& ranks() const { return ranks_; }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error("bench codecs: " + codec_text(codec_) + " on " + info_.name + ": " + what);
  }

 private:
  double exact(std::size_t i) const {
    double sum = 0;
    for (const RankStep& rank : ranks_) sum += input(rank, i);
    return sum / kRanks;
  }

  template <class Value>
  void compare(const char* what, double relative, Value value) const {
    double energy = 0, error = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      energy += std::pow(exact(i), 2);
      error += std::pow(value(i) - exact(i), 2);
    }
    if (!(error <= relative * relative * energy))
      fail(std::string(what) + " differ from the exact mean by " + number_text(std::sqrt(error / energy)) +
           " of its norm, expected at most " + number_text(relative));
  }

  const CodecOptions& codec_;
  std::optional<OwnMomentum> momentum_;
  const TensorInfo& info_;
  const std::vector<RankStep>& ranks_;
  const std::vector<float>& mean_;
  std::size_t n_;
};

// Half a unit in the last place for a share, and as much for their sum.
constexpr double kHalfRounding = 0x1p-11, kBfloatRounding = 0x1p-8, kFloatRounding = 1e-5;

void check_codec(const Check& check, const Fp16Options& options) {
  options.feedback ? check.conservation(kHalfRounding) : check.rounding(kHalfRounding);
}

void check_codec(const Check& check, const Bf16Options& options) {
  options.feedback ? check.conservation(kBfloatRounding) : check.rounding(kBfloatRounding);
}

void check_codec(const Check& check, const TopKOptions&) {
  check.conservation(kFloatRounding);
  check.largest();
}

void check_codec(const Check& check, const RandomKOptions& options) {
  options.feedback ? check.conservation(kFloatRounding) : check.scaled_sample();
}

void check_codec(const Check& check, const SignVoteOptions&) {
  check.vote();
}

void check_codec(const Check& check, const QsgdOptions& options) {
  const auto block = static_cast<std::size_t>(options.block);
  const double steps = (1 << (std::stoi(options.bits) - 1)) - 1;
  std::vector<std::vector<double>> units;
  for (const RankStep& rank : check.ranks()) {
    auto& own = units.emplace_back();
    for (std::size_t begin = 0; begin < check.size(); begin += block) {
      double squares = 0;
      for (std::size_t i = begin; i < std::min(check.size(), begin + block); ++i)
        squares += std::pow(check.input(rank, i), 2);
      own.push_back(
          (options.norm == "l2" ? std::sqrt(squares) : check.largest_of(rank, begin, begin + block)) / steps);
    }
  }
  if (options.share_scale)
    for (std::size_t i = 0; i < units[0].size(); ++i) {
      double largest = 0;
      for (const auto& own : units) largest = std::max(largest, own[i]);
      for (auto& own : units) own[i] = largest;
    }
  const auto* first = check.ranks().data();
  check.unbiased([&](const RankStep& rank,
                     std::size_t i) { return units[static_cast<std::size_t>(&rank - first)][i / block]; },
                 [](const RankStep&) { return INFINITY; });
}

void check_codec(const Check& check, const TernGradOptions& options) {
  std::vector<double> scales;
  for (const RankStep& rank : check.ranks()) {
    double sum = 0, squares = 0;
    const auto n = static_cast<double>(check.size());
    for (std::size_t i = 0; i < check.size(); ++i) {
      sum += check.input(rank, i);
      squares += std::pow(check.input(rank, i), 2);
    }
    const double deviation = std::sqrt(squares / n - sum * sum / n / n);
    const double largest = check.largest_of(rank, 0, check.size());
    scales.push_back(options.clip > 0 ? std::min(options.clip * deviation, largest) : largest);
  }
  if (options.share_scale)
    std::fill(scales.begin(), scales.end(), *std::max_element(scales.begin(), scales.end()));
  const auto scale = [&](const RankStep& rank) {
    return scales[static_cast<std::size_t>(&rank - check.ranks().data())];
  };
  check.unbiased([&](const RankStep& rank, std::size_t) { return scale(rank); }, scale);
}

void check_codec(const Check& check, const AtomoOptions&) {
  check.direction();
}

void check_codec(const Check&, const NoneOptions&) {}

template <class Options>
concept Conserving = std::same_as<Options, DgcOptions> || std::same_as<Options, MsTopKOptions> ||
    std::same_as<Options, PowerSgdOptions> || std::same_as<Options, SignScaledOptions> ||
    std::same_as<Options, ThresholdOptions>;

template <Conserving Options>
void check_codec(const Check& check, const Options&) {
  check.conservation(kFloatRounding);
}

// A codec that nobody described here: it may round as coarsely as bf16, and without a residual it may be right on average only.
void check_any(const Check& check) {
  if (check.keeps()) check.balance(kBfloatRounding);
}

template <class Options>
void check_codec(const Check& check, const Options&) {
  check_any(check);
}

}  // namespace

void check_any_step(const CodecOptions& codec, const TensorInfo& info, const GroupStep& group) {
  const Check check(codec, info, group);
  check.agreement();
  check_any(check);
}

void check_step(const CodecOptions& codec, const TensorInfo& info, const GroupStep& group) {
  const Check check(codec, info, group);
  check.agreement();
  std::visit([&](const auto& options) { check_codec(check, options); }, codec);
}

}  // namespace accordion::bench
