#include "accordion/compress/dgc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/noise_testing.h"
#include "accordion/compress/sparse.h"
#include "accordion/compress/topk.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;

// One rank alone: what is sent is the mean.
class Worker {
 public:
  Worker(const DgcOptions& options, std::size_t n)
      : options_(options), codec_(make(options, Shape{{static_cast<std::int64_t>(n)}})), v(n), sent(n) {}

  void step(const Floats& gradient, int epoch = 100, bool finite = true) {
    const Context context{.step = step_++, .epoch = epoch};
    std::vector<std::byte> bytes(codec_->round(0, context).max_bytes);
    EXPECT_LE(bytes.size(), payload_bytes(options_, Shape{{static_cast<std::int64_t>(v.size())}}, 1));
    Floats next(v.size(), 9.0f);
    encoded = codec_->encode(0, context, {gradient, v, next}, bytes);
    ASSERT_LE(encoded.bytes, bytes.size());
    std::fill(sent.begin(), sent.end(), 9.0f);
    codec_->decode(0, context,
                   std::vector{Message{std::span(bytes).first(encoded.bytes), encoded.count, encoded.flags}},
                   sent);
    codec_->commit(finite && encoded.finite);
    if (finite && encoded.finite) v = next;
  }

  Floats momentum() {
    State state;
    codec_->save_state(StateWriter(state));
    EXPECT_EQ(state.size(), 1u);
    return std::get<Floats>(state.at("momentum"));
  }

 private:
  DgcOptions options_;
  std::unique_ptr<Compressor> codec_;
  std::uint64_t step_ = 0;

 public:
  Floats v, sent;
  Encoded encoded;
};

TEST(Dgc, LosesNothingOfTheMomentum) {
  for (bool nesterov : {false, true})
    for (bool masking : {false, true}) {
      const std::size_t n = 3001;
      Worker run({.keep = 0.01, .nesterov = nesterov, .masking = masking}, n);
      std::vector<double> sent(n), flowed(n), u(n);
      for (unsigned t = 0; t < 20; ++t) {
        const Floats g = noise(n, t);
        run.step(g);
        for (std::size_t i = 0; i < n; ++i) {
          u[i] = nesterov ? 0.9 * (u[i] + g[i]) : 0.9 * u[i] + g[i];
          flowed[i] += nesterov ? u[i] + g[i] : u[i];
          sent[i] += run.sent[i];
          ASSERT_NEAR(sent[i] + run.v[i], flowed[i], 1e-4) << t << ", " << i;
          if (run.sent[i] != 0) {
            ASSERT_EQ(run.v[i], 0) << i;
            if (masking) u[i] = 0;
          }
        }
        const Floats momentum = run.momentum();
        for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(momentum[i], u[i], 1e-4) << t << ", " << i;
      }
    }
}

TEST(Dgc, SendsAboutKAndOnlyLargeEntries) {
  for (std::size_t n : {1, 10, 1999, 50000})
    for (double keep : {0.001, 0.01, 0.3})
      for (unsigned seed = 0; seed < 5; ++seed) {
        SCOPED_TRACE(::testing::Message() << n << " entries, keep " << keep << ", seed " << seed);
        Worker run({.keep = keep}, n);
        run.step(noise(n, seed));
        const auto k = static_cast<std::size_t>(std::ceil(keep * n));
        EXPECT_LE(run.encoded.count, k);
        EXPECT_GE(run.encoded.count, 0.8 * k);
        EXPECT_EQ(run.encoded.bytes, 8 * run.encoded.count);
        float least = 1e30f, most = 0;
        for (std::size_t i = 0; i < n; ++i) {
          if (run.sent[i] != 0) least = std::min(least, std::abs(run.sent[i]));
          most = std::max(most, std::abs(run.v[i]));
        }
        EXPECT_GE(least, most);  // What stays is no larger than what goes.
      }
}

TEST(Dgc, WithoutMomentumAndWithAFullSampleIsTopK) {
  const std::size_t n = 20000;
  Worker run({.keep = 0.01, .momentum = 0, .sample = 1}, n);
  const auto topk = make(TopKOptions{0.01}, Shape{{static_cast<std::int64_t>(n)}});
  Floats residual(n), next(n), mean(n);
  for (unsigned t = 0; t < 5; ++t) {
    const Floats g = noise(n, t);
    run.step(g);
    std::vector<std::byte> bytes(topk->round(0, {}).max_bytes);
    const Encoded encoded = topk->encode(0, {}, {g, residual, next}, bytes);
    topk->decode(0, {}, std::vector{Message{bytes, encoded.count, encoded.flags}}, mean);
    residual = next;
    EXPECT_EQ(run.sent, mean);
    EXPECT_EQ(run.v, next);
  }
}

TEST(Dgc, GoesBackAfterAStepThatDoesNotCount) {
  const std::size_t n = 500;
  Worker once({.keep = 0.05}, n), twice({.keep = 0.05}, n);
  once.step(noise(n, 1));
  twice.step(noise(n, 1));
  twice.step(noise(n, 2), 100, false);
  Floats bad = noise(n, 3);
  bad[n - 1] = std::nanf("");
  twice.step(bad);
  EXPECT_FALSE(twice.encoded.finite);
  EXPECT_EQ(once.momentum(), twice.momentum());
  EXPECT_EQ(once.v, twice.v);
}

TEST(Dgc, WarmsUpByEpochAndSendsAllAtDensityOne) {
  const std::size_t n = 16000;
  Worker run({.warmup = true}, n);
  for (auto [epoch, k] : {std::pair{0, 4000}, {1, 1000}, {2, 250}, {3, 64}, {4, 16}, {5, 16}}) {
    run.step(noise(n, epoch), epoch);
    EXPECT_LE(run.encoded.count, k) << epoch;
    EXPECT_GE(run.encoded.count, 0.8 * k) << epoch;
  }
  Worker all({.keep = 1}, n);
  all.step(noise(n, 1));
  EXPECT_EQ(all.encoded.flags, sparse::kDense);
  EXPECT_EQ(all.encoded.bytes, 4 * n);
  EXPECT_EQ(all.sent, noise(n, 1));
  EXPECT_EQ(all.momentum(), noise(n, 1));  // Kept, not masked.
  EXPECT_EQ(all.v, Floats(n));
}

TEST(Dgc, HandlesZeroEmptyTiedAndLopsidedTensors) {
  for (std::size_t n : {0, 1, 2, 5000, 100000}) {
    Worker zero({}, n), tied({.keep = 0.01}, n), spike({}, n);
    zero.step(Floats(n));
    EXPECT_EQ(zero.sent, Floats(n));
    EXPECT_EQ(zero.v, Floats(n));
    tied.step(Floats(n, -2.0f));
    EXPECT_EQ(tied.encoded.count, std::ceil(0.01 * n));
    Floats corner(n, 1e-30f);
    for (std::size_t i = 0; i < n / 1000; ++i) corner[i] = 1.0f + static_cast<float>(i);
    spike.step(corner);
    EXPECT_LE(spike.encoded.count, std::ceil(0.001 * n));
    EXPECT_GE(spike.encoded.count, 0.8 * std::ceil(0.001 * n));
    for (std::size_t i = n / 5000; i < n / 1000; ++i) EXPECT_EQ(spike.sent[i], corner[i]);
  }
}

TEST(Dgc, RefusesOptionsOutOfRange) {
  EXPECT_THROW(make(DgcOptions{.keep = 0}, Shape{{8}}), UsageError);
  EXPECT_THROW(make(DgcOptions{.momentum = 1}, Shape{{8}}), UsageError);
  EXPECT_THROW(make(DgcOptions{.sample = 0}, Shape{{8}}), UsageError);
}

}  // namespace
}  // namespace accordion
