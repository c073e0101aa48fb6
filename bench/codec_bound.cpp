#include "bench/codec_bound.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "accordion/base/error.h"

extern "C" void sgesdd_(const char* job, const int* m, const int* n, float* a, const int* lda, float* s,
                        float* u, const int* ldu, float* vt, const int* ldvt, float* work, const int* lwork,
                        int* iwork, int* info, std::size_t job_length);

namespace accordion::bench {
namespace {

// A message is written in step with the entries it stems from, some hundred bytes at a time: measured as fast
// as one loop that writes both.
constexpr std::size_t kMessagePart = 512, kLeast = 256, kChunk = 4096;

std::size_t chunk_of(std::size_t n, std::size_t bytes) {
  return std::clamp(kMessagePart * n / std::max<std::size_t>(bytes, 1), kLeast, kChunk);
}

// Keeps the compiler from dropping loops that only read.
std::atomic<std::uint32_t> sink;

template <int kReads, int kWrites>
[[gnu::always_inline]] inline std::uint32_t stream(const Streams& s, std::size_t begin, std::size_t end) {
  const float* __restrict a = s.gradient.data();
  const float* __restrict b = s.residual.data();
  const float* __restrict c = s.third.data();
  float* __restrict x = s.next.data();
  float* __restrict y = s.second.data();
  std::uint32_t seen = 0;
  for (std::size_t i = begin; i < end; ++i) {
    float value = a[i];
    if constexpr (kReads > 1) value += b[i];
    if constexpr (kReads > 2) value += c[i];
    if constexpr (kWrites > 0) x[i] = value;
    if constexpr (kWrites > 1) y[i] = value;
    if constexpr (kWrites == 0) seen |= std::bit_cast<std::uint32_t>(value);
  }
  return seen;
}

// Plain loops, for the widest vectors that the machine has: with narrow ones reading is slower than memory.
#define ACCORDION_STREAM(reads, writes)                                                         \
  [[gnu::target_clones("avx512f", "avx2", "default")]] std::uint32_t stream_##reads##_##writes( \
      const Streams& s, std::size_t begin, std::size_t end) {                                   \
    return stream<reads, writes>(s, begin, end);                                                \
  }
ACCORDION_STREAM(1, 0)
ACCORDION_STREAM(2, 0)
ACCORDION_STREAM(2, 1)
ACCORDION_STREAM(3, 2)
#undef ACCORDION_STREAM

auto stream_for(const Pass& pass) {
  if (pass.reads == 1 && pass.writes == 0) return stream_1_0;
  if (pass.reads == 2 && pass.writes == 0) return stream_2_0;
  if (pass.reads == 2 && pass.writes == 1) return stream_2_1;
  if (pass.reads == 3 && pass.writes == 2) return stream_3_2;
  throw Error("no bound reads " + std::to_string(pass.reads) + " streams and writes " +
              std::to_string(pass.writes));
}

}  // namespace

// When in doubt, less: a bound must not flatter.
LeastWork least_work(const CodecOptions& codec, bool feedback) {
  // Gradient and residual in, next residual out; or the gradient alone.
  const Pass read = feedback ? Pass{0, 2, 0} : Pass{0, 1, 0}, step = feedback ? Pass{0, 2, 1} : read;
  return std::visit(
      [&](const auto& options) -> LeastWork {
        using Options = std::decay_t<decltype(options)>;
        // The momentum comes and goes as well.
        if constexpr (std::is_same_v<Options, DgcOptions>) return {{{0, 3, 2}}};
        // The scale is known only after all entries were seen, so they are read again for the residual.
        if constexpr (std::is_same_v<Options, SignScaledOptions>) return {{read, step}};
        // Deviation and maximum first, then the signs. With share-scale a collective lies between.
        if constexpr (std::is_same_v<Options, TernGradOptions>)
          return {{read, {options.share_scale ? 1 : 0, step.reads, step.writes}}};
        // A block's scale is known while the block is in the cache, unless the ranks must agree on it first.
        if constexpr (std::is_same_v<Options, QsgdOptions>) {
          if (options.share_scale) return {{read, {1, step.reads, step.writes}}};
          return {{step}};
        }
        // P = M Q reads all before Q = M^T P can start; the residual of some columns can follow their part of
        // Q in the cache.
        if constexpr (std::is_same_v<Options, PowerSgdOptions>)
          return {.passes = {read, {1, step.reads, step.writes}}, .whole_step = true};
        if constexpr (std::is_same_v<Options, AtomoOptions>) return {.passes = {step}, .decomposes = true};
        // All others could do with one: entries to send are told by a threshold that a sample gives.
        return {{step}};
      },
      codec);
}

void stream_encode(const Pass& pass, const Streams& streams, std::span<std::byte> message) {
  const auto run = stream_for(pass);
  const std::size_t n = streams.gradient.size(), chunk = chunk_of(n, message.size());
  std::uint32_t seen = 0;
  std::size_t written = 0;
  for (std::size_t begin = 0; begin < n; begin += chunk) {
    const std::size_t end = std::min(n, begin + chunk);
    seen |= run(streams, begin, end);
    const std::size_t upto = message.size() * end / n;
    std::memcpy(message.data() + written, streams.gradient.data() + begin,
                std::min(upto - written, (end - begin) * sizeof(float)));
    written = upto;
  }
  sink.fetch_or(seen, std::memory_order_relaxed);
}

void stream_decode(std::span<const std::span<const std::byte>> messages, std::span<float> mean) {
  std::uint32_t seen = 0;
  for (std::size_t begin = 0; begin < mean.size(); begin += kChunk) {
    const std::size_t end = std::min(mean.size(), begin + kChunk);
    for (const auto message : messages) {
      const std::size_t words = message.size() / 4, from = words * begin / mean.size(),
                        upto = words * end / mean.size();
      const auto* read = reinterpret_cast<const std::uint32_t*>(message.data());
      for (std::size_t i = from; i < upto; ++i) seen |= read[i];
    }
    std::fill(mean.data() + begin, mean.data() + end, std::bit_cast<float>(seen & 0x3fffffff));
  }
}

SvdBound::SvdBound(const Shape& shape)
    : m_(static_cast<int>(shape.columns())),
      n_(static_cast<int>(shape.rows())),
      a_(shape.count()),
      sigma_(std::min(shape.rows(), shape.columns())),
      u_(shape.columns() * sigma_.size()),
      vt_(sigma_.size() * shape.rows()),
      work_(1),
      iwork_(8 * sigma_.size()) {}

void SvdBound::run(std::span<const float> gradient) {
  std::copy(gradient.begin(), gradient.end(), a_.begin());  // LAPACK destroys its input.
  const int least = static_cast<int>(sigma_.size());
  int info = 0;
  const auto call = [&](int length) {
    sgesdd_("S", &m_, &n_, a_.data(), &m_, sigma_.data(), u_.data(), &m_, vt_.data(), &least, work_.data(),
            &length, iwork_.data(), &info, 1);
  };
  if (work_.size() == 1) {
    call(-1);
    work_.resize(static_cast<std::size_t>(work_[0] * 1.0000005) + 1);
  }
  call(static_cast<int>(work_.size()));
}

}  // namespace accordion::bench
