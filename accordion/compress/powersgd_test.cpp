#include "accordion/compress/powersgd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "accordion/base/noise_testing.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;

double squares(const Floats& x) {
  double sum = 0;
  for (float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

// Some ranks in one thread.
struct Group {
  Group(PowerSgdOptions options, Shape shape, std::size_t world, bool feedback = true)
      : residuals(world), nexts(world) {
    for (std::size_t rank = 0; rank < world; ++rank) {
      codecs.push_back(make(options, shape));
      if (feedback) residuals[rank].resize(shape.count()), nexts[rank].resize(shape.count());
    }
  }

  Floats step(const std::vector<Floats>& gradients) {
    Context context{.seed = 3, .step = steps++, .world = static_cast<int>(codecs.size())};
    Floats mean(gradients[0].size(), NAN);
    finite = true;
    bytes = 0;
    for (int i = 0; i < 2; ++i) {
      const std::size_t room = codecs[0]->round(i, context).max_bytes;
      Floats sum(room / 4), message(room / 4);
      for (std::size_t rank = 0; rank < codecs.size(); ++rank) {
        context.rank = static_cast<int>(rank);
        const Encoded encoded =
            codecs[rank]->encode(i, context, {gradients[rank], residuals[rank], nexts[rank]},
                                 std::as_writable_bytes(std::span(message)));
        EXPECT_EQ(encoded.bytes, room);
        finite = finite && encoded.finite;
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += message[k];
      }
      bytes += room;
      last_sum = sum;
      const Message result{.payload = std::as_bytes(std::span(sum))};
      for (std::size_t rank = 0; rank < codecs.size(); ++rank) {
        Floats own(mean.size(), NAN);
        context.rank = static_cast<int>(rank);
        codecs[rank]->decode(i, context, {&result, 1}, own);
        EXPECT_TRUE(i == 0 || rank == 0 || !finite || own == mean);
        mean = own;
      }
    }
    for (auto& codec : codecs) codec->commit(finite);
    if (finite) residuals.swap(nexts);
    return mean;
  }

  std::vector<std::unique_ptr<Compressor>> codecs;
  std::vector<Floats> residuals, nexts;
  Floats last_sum;  // Of the last round: Q.
  std::uint64_t steps = 0;
  std::size_t bytes = 0;
  bool finite = true;
};

Floats low_rank(std::size_t rows, std::size_t columns, std::size_t rank) {
  const Floats u = noise(rows * rank, 11), v = noise(columns * rank, 12);
  Floats a(rows * columns);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < rank; ++j) a[i] += u[i / columns * rank + j] * v[i % columns * rank + j];
  return a;
}

TEST(PowerSgd, ExactForMatricesOfItsRankAndAtFullRank) {
  for (std::size_t rank : {1, 2, 3, 4, 6, 9}) {
    const Floats a = rank == 9 ? noise(9 * 20, 1) : low_rank(9, 20, rank);
    for (int more : {0, 1, 2}) {  // Columns of P beyond the matrix' rank are noise, and must not harm.
      Group group({.approx_rank = static_cast<int>(rank) + more}, {{9, 4, 5}}, 1);
      const Floats mean = group.step({a});
      EXPECT_LT(squares(group.residuals[0]), 1e-9 * squares(a)) << rank << " + " << more;
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(mean[i], a[i], 1e-4);
    }
  }
}

// What the first column leaves of the others is rounding, and rounding is not sent as if it were a direction.
TEST(PowerSgd, ColumnsBeyondTheMeansRankAreZero) {
  const struct { std::size_t rows, columns; } sizes[] = {{5, 8}, {16, 27}, {64, 576}, {300, 1000}};
  for (const auto& [rows, columns] : sizes)
    for (int rank : {2, 3, 4})
      for (std::size_t world : {1, 3}) {
        const Shape shape{{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}};
        Group group({.approx_rank = rank}, shape, world);
        for (int step = 0; step < 3; ++step) {
          std::vector<Floats> gradients(world, low_rank(rows, columns, 1));
          for (std::size_t k = 1; k < world; ++k)
            for (float& value : gradients[k]) value *= 0.7f * static_cast<float>(k);
          group.step(gradients);
          const Floats first(group.last_sum.begin(), group.last_sum.begin() + static_cast<long>(columns));
          const Floats others(group.last_sum.begin() + static_cast<long>(columns), group.last_sum.end());
          EXPECT_GT(squares(first), 0.9 * squares(gradients[0]));
          EXPECT_EQ(squares(others), 0) << rows << " x " << columns << " rank " << rank << " world " << world;
        }
      }
}

TEST(PowerSgd, ResidualIsAProjection) {
  for (int rank : {1, 2, 4, 8, 12}) {
    Group group({.approx_rank = rank}, {{30, 41}}, 1);
    const Floats a = noise(30 * 41, 2), mean = group.step({a});
    EXPECT_NEAR(squares(group.residuals[0]), squares(a) - squares(mean), 1e-5 * squares(a));
    EXPECT_EQ(group.bytes, payload_bytes({.approx_rank = rank}, {{30, 41}}, 1));
    EXPECT_EQ(group.bytes, 4u * static_cast<unsigned>(rank) * (30 + 41));
  }
}

// With nothing but its warm start, a fixed matrix is approximated ever better, up to the best there is.
TEST(PowerSgd, WarmStartConverges) {
  Floats a(12 * 12);
  for (std::size_t i = 0; i < 12; ++i) a[i * 12 + (i * 5) % 12] = 12.0f - static_cast<float>(i);
  const double best = squares(a) - 144 - 121;
  for (bool warm : {true, false}) {
    Group group({.approx_rank = 2, .warm_start = warm}, {{12, 12}}, 1, false);
    double error = 0;
    for (int step = 0; step < 60; ++step) {
      Floats left = group.step({a});
      for (std::size_t i = 0; i < a.size(); ++i) left[i] -= a[i];
      EXPECT_TRUE(!warm || step == 0 || squares(left) <= error * 1.00001) << step;
      error = squares(left);
    }
    EXPECT_EQ(error < best * 1.001, warm) << error << ", best " << best;
  }
}

TEST(PowerSgd, ManyRanksAreOneRankWithTheMean) {
  Group three({.approx_rank = 3}, {{16, 25}}, 3), one({.approx_rank = 3}, {{16, 25}}, 1);
  std::vector<double> sent(400), given(400);
  for (unsigned step = 0; step < 6; ++step) {
    const std::vector<Floats> gradients = {noise(400, 3 * step), noise(400, 3 * step + 1),
                                           noise(400, 3 * step + 2)};
    Floats average(400);
    for (std::size_t i = 0; i < 400; ++i)
      average[i] = (gradients[0][i] + gradients[1][i] + gradients[2][i]) / 3;
    const Floats mean = three.step(gradients), single = one.step({average});
    for (std::size_t i = 0; i < 400; ++i) {
      EXPECT_NEAR(mean[i], single[i], 1e-3) << step;
      sent[i] += mean[i], given[i] += average[i];
    }
  }
  for (std::size_t i = 0; i < 400; ++i) {
    const double owed = (three.residuals[0][i] + three.residuals[1][i] + three.residuals[2][i]) / 3.0;
    EXPECT_NEAR(sent[i] + owed, given[i], 1e-5 * 6);
  }
}

TEST(PowerSgd, RecoversFromAZeroGradient) {
  Group group({.approx_rank = 2}, {{6, 8}}, 2);
  const Floats zero(48);
  EXPECT_EQ(group.step({zero, zero}), zero);
  EXPECT_EQ(group.residuals[0], zero);
  EXPECT_GT(squares(group.step({noise(48, 1), noise(48, 2)})), 0.1);
}

Floats state(const Compressor& codec) {
  State state;
  codec.save_state(StateWriter(state));
  EXPECT_EQ(state.size(), 1u);
  return std::get<Floats>(state.at("q"));
}

void set_state(Compressor& codec, const Floats& q) {
  const State state = {{"q", q}};
  codec.load_state(StateReader(state));
}

TEST(PowerSgd, AStepThatIsNotFiniteLeavesNoTrace) {
  for (float bad : {INFINITY, NAN, 3e38f}) {
    Group group({.approx_rank = 2}, {{6, 8}}, 2);
    group.step({noise(48, 1), noise(48, 2)});
    const Floats before = state(*group.codecs[0]);
    EXPECT_EQ(before.size(), 16u);
    Floats gradient = noise(48, 3);
    for (std::size_t i = 8; i < 16; ++i) gradient[i] = std::copysign(bad, before[i - 8]);
    group.step({gradient, noise(48, 4)});
    EXPECT_FALSE(group.finite);
    EXPECT_EQ(state(*group.codecs[0]), before);
  }
}

// Each rank's factor is finite, and their sum is not.
TEST(PowerSgd, ASumThatIsNotFiniteLeavesNoTrace) {
  Group group({.approx_rank = 1}, {{6, 8}}, 2);
  group.step({noise(48, 1), noise(48, 2)});
  const Floats before = state(*group.codecs[0]);
  const double length = std::sqrt(squares(before));
  Floats gradient = noise(48, 3);
  for (std::size_t i = 8; i < 16; ++i) gradient[i] = static_cast<float>(2.5e38 * before[i - 8] / length);
  group.step({gradient, gradient});
  EXPECT_FALSE(group.finite);
  EXPECT_EQ(state(*group.codecs[0]), before);
}

TEST(PowerSgd, AnotherRankTakesOverTheColumnsItHasRoomFor) {
  const Floats a = low_rank(10, 14, 2);
  Group two({.approx_rank = 2}, {{10, 14}}, 1), one({.approx_rank = 1}, {{10, 14}}, 1);
  Group three({.approx_rank = 3}, {{10, 14}}, 2), same({.approx_rank = 2}, {{10, 14}}, 1);
  two.step({a});
  const Floats q = state(*two.codecs[0]);
  for (Group* group : {&one, &three, &same})
    for (auto& codec : group->codecs) set_state(*codec, q);
  EXPECT_LT(std::sqrt(squares(one.step({a}))), std::sqrt(squares(a)));
  EXPECT_EQ(state(*one.codecs[0]).size(), 14u);
  three.step({a, a});
  EXPECT_EQ(state(*three.codecs[0]).size(), 42u);
  EXPECT_EQ(state(*three.codecs[0]), state(*three.codecs[1]));
  two.residuals[0].assign(140, 0);
  EXPECT_EQ(same.step({a}), two.step({a}));
  EXPECT_THROW(set_state(*one.codecs[0], Floats(15)), Error);
}

TEST(PowerSgd, EdgesOfSizeAndScale) {
  for (const Shape& shape :
       {Shape{{0}}, Shape{{0, 3}}, Shape{{3, 0}}, Shape{{1}}, Shape{{7}}, Shape{{1, 7}}, Shape{{}}})
    for (float scale : {1.0f, 1e-40f, 1e37f, 0.0f}) {
      Group group({.approx_rank = 4}, shape, 2);
      const Floats a = noise(shape.count(), 1, scale), b = noise(shape.count(), 2, scale);
      const Floats mean = group.step({a, b});
      EXPECT_TRUE(group.finite);
      for (float value : mean) EXPECT_TRUE(std::isfinite(value));
    }
}

TEST(PowerSgd, RefusesWhatCannotBeRight) {
  EXPECT_THROW(make(PowerSgdOptions{.approx_rank = 0}, {{4, 4}}), UsageError);
  EXPECT_THROW(make(PowerSgdOptions{.approx_rank = 1025}, {{4, 4}}), UsageError);
  const auto codec = make(PowerSgdOptions{.approx_rank = 1}, {{4, 4}});
  const std::vector<std::byte> bytes(20);
  Floats mean(16);
  for (std::size_t size : {0, 15, 17, 20}) {
    const Message message{.payload = std::span(bytes).first(size)};
    EXPECT_THROW(codec->decode(0, {}, {&message, 1}, mean), Error);
  }
  EXPECT_THROW(codec->decode(1, {}, {}, mean), Error);
}

}  // namespace
}  // namespace accordion
