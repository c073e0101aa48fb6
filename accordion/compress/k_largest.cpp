#include "accordion/compress/k_largest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "accordion/base/error.h"

namespace accordion {

using kernels::Magnitude;

namespace {

// Up to here every entry is a candidate.
constexpr std::size_t kSmall = 4096;

// Each costs a cache line, and a few thousand tell the cut well enough.
std::size_t sample_size(std::size_t n) {
  return n <= kSmall ? 0 : std::clamp<std::size_t>(n / 128, 1024, 4096);
}

// Ranks in the sample between which the k-th largest of all lies but for a few standard deviations.
struct Ranks {
  double high, low;
};

Ranks ranks(std::size_t sample, double share) {
  const double expected = share * static_cast<double>(sample);
  const double slack = 4 * std::sqrt(expected * (1 - share)) + 8;
  return {expected - slack, expected + slack};
}

}  // namespace

std::size_t Kept::count(std::size_t n) const {
  return std::min(n, std::max<std::size_t>(1, static_cast<std::size_t>(keep * static_cast<double>(n))));
}

bool Kept::dense(std::size_t n, int world) const {
  return !published && (keep * world >= 1 || count(n) == n);
}

std::size_t Kept::bytes(std::size_t n, int world) const {
  return dense(n, world) ? n * sizeof(float) : count(n) * sparse::kEntryBytes;
}

KLargest::KLargest(std::string_view name, Kept kept, std::size_t n)
    : name_(name), kept_(kept), n_(n), k_(kept.count(n)), sample_(sample_size(n)) {}

Round KLargest::round(int, const Context& context) const {
  const std::size_t bytes = kept_.bytes(n_, context.world);
  if (kept_.dense(n_, context.world)) return {Pattern::kSum, Element::kFloat, bytes};
  return {Pattern::kGather, Element::kByte, bytes};
}

KLargest::Interval KLargest::guess(const kernels::Sum& a, bool dense) {
  if (k_ == n_) return {0, 0};
  Interval all{0, kernels::kBeyondAll};
  std::size_t room = n_;
  if (!sample_.empty()) {
    const std::size_t stride = n_ / sample_.size();
    // One entry of each stretch, at a place that no row length can be in step with.
    std::uint32_t place = 0;
    for (std::size_t i = 0; i < sample_.size(); ++i, place += 0x9e3779b9u)
      sample_[i] = a[i * stride + ((std::uint64_t{place} * stride) >> 32)];
    const double share = static_cast<double>(k_) / static_cast<double>(n_);
    const Ranks rank = ranks(sample_.size(), share);
    const auto size = static_cast<double>(sample_.size());
    if (rank.low < size) all.low = kernels::kth_largest({sample_}, static_cast<std::size_t>(rank.low)).value;
    if (dense && rank.high >= 1)
      all.high = kernels::kth_largest({sample_}, static_cast<std::size_t>(rank.high)).value + 1;
    const double width = std::min(rank.low, size) - (dense ? std::max(rank.high, 0.0) : 0);
    room = std::min(n_, static_cast<std::size_t>(1.25 * width * static_cast<double>(stride)) + 1024);
  }
  indices_.resize(std::max(indices_.size(), room));
  values_.resize(std::max(values_.size(), room));
  return all;
}

Encoded KLargest::encode(int, const Context& context, const Feedback& feedback, std::span<std::byte> out) {
  const bool dense = kept_.dense(n_, context.world);
  Encoded encoded{.bytes = kept_.bytes(n_, context.world),
                  .count = dense ? 0 : static_cast<std::uint32_t>(k_)};
  const kernels::Sum a{feedback.gradient, feedback.residual};
  const std::span<float> next = feedback.next;
  const auto divisor = static_cast<float>(context.world);
  const std::span<float> dense_out(reinterpret_cast<float*>(out.data()), dense ? n_ : 0);

  const Interval interval = guess(a, dense);
  const kernels::Room room{indices_, values_};
  const kernels::Swept swept =
      dense ? kernels::sweep_split(a, interval.low, interval.high, divisor, next, dense_out, room)
            : kernels::sweep(a, interval.low, next, room);
  if (!swept.finite()) {
    if (dense)
      std::memset(out.data(), 0, encoded.bytes);
    else
      sparse::write_zeros(out, k_);
    encoded.finite = false;
    return encoded;
  }

  if (swept.fits(room) && swept.above <= k_ && swept.above + swept.picked >= k_) {
    const kernels::Room candidates{room.indices.first(swept.picked), room.values.first(swept.picked)};
    const sparse::Cut cut =
        choose(context, Candidates{candidates.values, interval.low, interval.high, swept, n_, k_});
    if (dense)
      sparse::take_dense(cut, candidates, divisor, dense_out, next);
    else
      sparse::take(cut, candidates, sparse::lay_out(out, k_), next);
  } else {
    const sparse::Cut cut = choose(context, kernels::kth_largest(a, k_), k_);
    if (dense)
      sparse::take_dense(cut, a, divisor, dense_out, next);
    else
      sparse::take(cut, a, sparse::lay_out(out, k_), next);
  }
  return encoded;
}

void KLargest::decode(int, const Context& context, std::span<const Message> messages, std::span<float> mean) {
  const bool dense = kept_.dense(n_, context.world);
  const std::size_t expected = kept_.bytes(n_, context.world);
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    if (messages[rank].payload.size() == expected && (dense || messages[rank].count == k_)) continue;
    throw Error(std::string(name_) + ": message from rank " + std::to_string(rank) + " has " +
                std::to_string(messages[rank].payload.size()) + " bytes and " +
                std::to_string(messages[rank].count) + " entries, expected " + std::to_string(expected) +
                " and " + std::to_string(dense ? 0 : k_));
  }
  if (!dense) return decoder_.decode(name_, context, messages, mean, kept_.published ? 1 : context.world);
  // The entries were divided before they were added.
  if (messages.size() != 1) throw Error(std::string(name_) + ": a sum has one message, not several");
  if (n_ > 0) std::memcpy(mean.data(), messages[0].payload.data(), expected);
}

}  // namespace accordion
