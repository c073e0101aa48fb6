// DGC (Lin et al., Deep gradient compression): momentum u is kept on each rank and runs into an accumulator
// v, which takes the residual's place; the largest entries of v are sent. A threshold guessed from a sample
// decides: if more than k entries reach it, the k largest go; if fewer than 0.8 k do, it is lowered, at most
// nine times.
//
// message := index: u32[count], value: f32[count]   -- ascending indices, count <= k = ceil(keep * n)
//          | value: f32[n]                          -- flag kDense: keep = 1; momentum is then kept,
//                                                      not masked
#include "accordion/compress/dgc.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "accordion/base/error.h"
#include "accordion/compress/sparse.h"
#include "accordion/kernels/kth_largest.h"

namespace accordion {

using kernels::Magnitude;

namespace {

constexpr std::array kWarmup = {0.25, 0.0625, 0.015625, 0.004, 0.001};
constexpr int kRounds = 10;
constexpr double kEnough = 0.8, kLower = 0.8;

std::size_t ceiling(double x) {
  return static_cast<std::size_t>(std::ceil(x));
}

double density(const DgcOptions& options, int epoch) {
  const bool warming = options.warmup && epoch >= 0 && epoch < static_cast<int>(kWarmup.size());
  return warming ? std::max(options.keep, kWarmup[static_cast<std::size_t>(epoch)]) : options.keep;
}

std::size_t kept_at_most(double keep, std::size_t n) {
  return std::min(n, ceiling(keep * static_cast<double>(n)));
}

std::size_t message_bytes(double keep, std::size_t n) {
  return keep >= 1 ? n * sizeof(float) : kept_at_most(keep, n) * sparse::kEntryBytes;
}

// Entries that the threshold is guessed from, and the place of the guess among them.
struct Sample {
  Sample(const DgcOptions& options, double keep, std::size_t n)
      : size(std::min(n, std::max(ceiling(options.sample * static_cast<double>(n)), ceiling(2 / keep)))),
        rank(ceiling(keep * static_cast<double>(size))) {}
  std::size_t size, rank;
};

// The sample itself holds so many entries that reach the threshold.
std::size_t least_bytes(const DgcOptions& options, double keep, std::size_t n) {
  if (keep >= 1 || n == 0) return message_bytes(keep, n);
  return std::min(kept_at_most(keep, n), Sample(options, keep, n).rank) * sparse::kEntryBytes;
}

class Dgc final : public Compressor {
 public:
  Dgc(const DgcOptions& options, std::size_t n) : options_(options), n_(n), momentum_(n), pending_(n) {}

  bool wants_feedback() const override { return true; }

  Round round(int, const Context& context) const override {
    const double keep = density(options_, context.epoch);
    return {Pattern::kGather, Element::kByte, message_bytes(keep, n_), /*fixed=*/false,
            least_bytes(options_, keep, n_)};
  }

  Encoded encode(int, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    const double keep = density(options_, context.epoch);
    const kernels::MomentumUpdate update{feedback.gradient, momentum_, feedback.residual,
                                         static_cast<float>(options_.momentum), options_.nesterov};
    encoded_ = true;
    if (n_ == 0) return {};
    if (keep >= 1) return encode_dense(update, feedback.next, out);

    const std::size_t k = kept_at_most(keep, n_);
    const Guess guess = guess_threshold(context, update, keep);
    const kernels::Room room{indices_, values_};
    const kernels::Swept swept = kernels::sweep_momentum(update, guess.low, pending_, feedback.next, room);
    if (!swept.finite()) return {.finite = false};

    const kernels::Sum v = !feedback.next.empty() ? kernels::Sum{feedback.next}
                           : options_.nesterov    ? kernels::Sum{pending_, feedback.gradient}
                                                  : kernels::Sum{pending_};
    const bool complete = swept.fits(room);
    const std::size_t found = complete ? swept.picked : 0;
    const kernels::Room candidates{room.indices.first(found), room.values.first(found)};
    const auto count = [&](Magnitude threshold) {
      const bool among = complete && threshold >= guess.low;
      return kernels::count_at_least(among ? kernels::Sum{candidates.values} : v, threshold);
    };
    Magnitude threshold = guess.threshold;
    std::size_t sent = count(threshold);
    for (int i = 1; i < kRounds && static_cast<double>(sent) < kEnough * static_cast<double>(k); ++i) {
      threshold = kernels::magnitude(static_cast<float>(kLower * std::bit_cast<float>(threshold)));
      sent = count(threshold);
    }
    // The k largest of those that reach the threshold are the k largest of all.
    sparse::Cut cut{.sure = threshold, .maybe = threshold};
    if (sent > k) {
      cut = sparse::largest(found >= k ? kernels::Sum{candidates.values} : v, k);
      sent = k;
    }
    const kernels::Room entries = sparse::lay_out(out, sent);
    if (complete && cut.maybe >= guess.low)
      sparse::take(cut, candidates, entries, {});
    else
      sparse::take(cut, v, entries, {});
    for (const std::uint32_t index : entries.indices) {
      if (!feedback.next.empty()) feedback.next[index] = 0;
      if (options_.masking) pending_[index] = 0;
    }
    return {sent * sparse::kEntryBytes, static_cast<std::uint32_t>(sent)};
  }

  void decode(int, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    decoder_.decode(DgcOptions::kName, context, messages, mean);
  }

  void commit(bool finite) override {
    if (finite && encoded_) momentum_.swap(pending_);
    encoded_ = false;
  }

  void save_state(const StateWriter& state) const override { state.put("momentum", momentum_); }
  void load_state(const StateReader& state) override { state.get("momentum", momentum_, n_); }
  void forget_own() override { std::fill(momentum_.begin(), momentum_.end(), 0.0f); }

 private:
  struct Guess {
    Magnitude threshold;
    Magnitude low;  // Reached by k entries almost surely, so that what is found above it decides.
  };

  Encoded encode_dense(const kernels::MomentumUpdate& update, std::span<float> next,
                       std::span<std::byte> out) {
    const std::span<float> v(reinterpret_cast<float*>(out.data()), n_);
    const kernels::Swept swept = kernels::sweep_momentum(update, kernels::kBeyondAll, pending_, v, {});
    std::fill(next.begin(), next.end(), 0.0f);
    if (!swept.finite()) return {.finite = false};
    return {n_ * sizeof(float), static_cast<std::uint32_t>(n_), sparse::kDense};
  }

  Guess guess_threshold(const Context& context, const kernels::MomentumUpdate& update, double keep) {
    const Sample sample(options_, keep, n_);
    const std::size_t size = sample.size, stride = n_ / size;
    sample_.resize(size);
    RandomStream random(context.private_key("dgc"));
    const std::size_t start = random.below(static_cast<std::uint32_t>(stride));
    for (std::size_t i = 0; i < size; ++i) sample_[i] = update.next_v(start + i * stride);

    const auto rank = static_cast<double>(sample.rank);
    const double low_rank = std::min(static_cast<double>(size), std::floor(rank + 4 * std::sqrt(rank) + 8));
    const auto room = static_cast<std::size_t>(1.25 * low_rank * static_cast<double>(stride + 1)) + 1024;
    indices_.resize(std::max(indices_.size(), std::min(n_, room)));
    values_.resize(indices_.size());
    return {kernels::kth_largest({sample_}, sample.rank).value,
            kernels::kth_largest({sample_}, static_cast<std::size_t>(low_rank)).value};
  }

  DgcOptions options_;
  std::size_t n_;
  std::vector<float> momentum_, pending_;  // Before the step, and after it if it is committed.
  bool encoded_ = false;
  std::vector<float> sample_;
  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
  sparse::Decoder decoder_;
};

}  // namespace

std::unique_ptr<Compressor> make(const DgcOptions& options, const Shape& shape) {
  check(DgcOptions::kName, options);
  return std::make_unique<Dgc>(options, shape.count());
}

std::size_t payload_bytes(const DgcOptions& options, const Shape& shape, int) {
  return message_bytes(density(options, 0), shape.count());
}

}  // namespace accordion
