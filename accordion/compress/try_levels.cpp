#include "accordion/compress/try_levels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "accordion/base/error.h"
#include "accordion/compress/k_largest.h"
#include "accordion/compress/lapack.h"
#include "accordion/compress/local_group.h"
#include "accordion/kernels/dense.h"

namespace accordion {
namespace {

double squared_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference;
  }
  return sum;
}

// What a group of one decodes, after `steps` steps on the same gradient.
double run_codec(Compressor& codec, std::span<const float> gradient, int steps) {
  std::vector<float> mean(gradient.size()), residual, next;
  if (codec.wants_feedback()) {
    residual.resize(gradient.size());
    next.resize(gradient.size());
  }
  for (int step = 0; step < steps; ++step) {
    const LocalRank alone{
        codec, {.step = static_cast<std::uint64_t>(step)}, {gradient, residual, next}, mean};
    for (const LocalRound& round : run_step({&alone, 1}))
      if (!round.finite()) return std::nan("");
    codec.commit(true);
  }
  return squared_distance(gradient, mean);
}

// tail[k]: the sum of all but the first k of `squares`, which fall.
std::vector<double> tails(std::span<const double> squares) {
  std::vector<double> tail(squares.size() + 1, 0);
  for (std::size_t k = squares.size(); k-- > 0;) tail[k] = tail[k + 1] + squares[k];
  return tail;
}

// What the k largest entries leave, for every k.
std::vector<double> entry_tails(std::span<const float> gradient) {
  std::vector<double> squares(gradient.begin(), gradient.end());
  for (double& value : squares) value *= value;
  std::sort(squares.begin(), squares.end(), std::greater<>());
  return tails(squares);
}

// What the best approximation of rank k leaves, for every k. Empty where the decomposition does not converge.
std::vector<double> spectral_tails(std::span<const float> gradient, const Shape& shape) {
  // Row after row is the transpose, column after column, which has the same singular values.
  const int m = static_cast<int>(shape.columns()), n = static_cast<int>(shape.rows());
  std::vector<float> a(gradient.begin(), gradient.end());
  std::vector<float> sigma(static_cast<std::size_t>(std::min(m, n)));
  std::vector<int> iwork(8 * sigma.size());
  std::vector<float> work(1);
  int info = 0;
  for (int room : {-1, 0}) {
    const int lwork = room < 0 ? room : static_cast<int>(work.size()), one = 1;
    sgesdd_("N", &m, &n, a.data(), &m, sigma.data(), nullptr, &one, nullptr, &one, work.data(), &lwork,
            iwork.data(), &info, 1);
    // Room is told in single precision, which may round it down.
    if (room < 0) work.resize(static_cast<std::size_t>(work[0] * 1.0000005) + 1);
  }
  if (info != 0) return {};
  std::vector<double> squares(sigma.begin(), sigma.end());
  for (double& value : squares) value *= value;
  return tails(squares);
}

// Sorts and decomposes at most once for all levels.
class Trials {
 public:
  Trials(std::span<const float> gradient, const Shape& shape, LowRankError method)
      : gradient_(gradient), shape_(shape), method_(method) {}

  double error(const CodecOptions& level) {
    const CodecTraits traits = traits_of(level);
    if (traits.keeps_largest) {
      if (by_entry_.empty()) by_entry_ = entry_tails(gradient_);
      return by_entry_[Kept{*traits.keeps_largest}.count(gradient_.size())];
    }
    if (traits.approx_rank && method_ == LowRankError::kSingularValues) {
      if (by_rank_.empty()) by_rank_ = spectral_tails(gradient_, shape_);
      if (by_rank_.empty()) return std::nan("");
      return by_rank_[std::min(by_rank_.size() - 1, static_cast<std::size_t>(*traits.approx_rank))];
    }
    const auto codec = make_compressor(level, shape_, 1, {.min_count = 0, .min_rate = 0});
    return codec ? run_codec(*codec, gradient_, traits.trial_steps) : 0;
  }

 private:
  std::span<const float> gradient_;
  const Shape& shape_;
  LowRankError method_;
  std::vector<double> by_entry_, by_rank_;
};

}  // namespace

std::vector<Trial> try_levels(std::span<const float> gradient, const Shape& shape,
                              std::span<const CodecOptions> levels, int world, const Routing& routing,
                              LowRankError method) {
  std::vector<Trial> result;
  Trials trials(gradient, shape, method);
  bool compresses = false;
  const bool finite = std::isfinite(kernels::sum_of_squares(gradient));
  for (const CodecOptions& level : levels) {
    const bool dense = !make_compressor(level, shape, world, routing);
    compresses = compresses || !dense;
    const CodecOptions sent = dense ? CodecOptions(NoneOptions{}) : level;
    result.push_back({dense    ? 0
                      : finite ? trials.error(level)
                               : std::nan(""),
                      static_cast<double>(payload_bytes(sent, shape, world))});
  }
  if (!compresses) result.clear();
  return result;
}

}  // namespace accordion
