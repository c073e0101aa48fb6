#include "accordion/data/clicks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "accordion/data/dataset.h"
#include "accordion/data/draws.h"

namespace accordion {
namespace {

const TableSet& clicks() {
  static const TableSet set = make_clicks();
  return set;
}

std::span<const float> numbers(const Table& table, std::size_t row) {
  return std::span(table.values).subspan(row * kClickNumbers, kClickNumbers);
}

std::span<const std::int32_t> categories(const Table& table, std::size_t row) {
  return std::span(table.category).subspan(row * kClickTables.size(), kClickTables.size());
}

TEST(Clicks, HasTheShapeItSays) {
  for (const auto& [table, rows] :
       {std::pair(&clicks().train, kClickTrainRows), {&clicks().test, kClickTestRows}}) {
    EXPECT_EQ(table->size(), rows);
    EXPECT_EQ(table->numbers, kClickNumbers);
    EXPECT_THAT(table->tables, testing::ElementsAreArray(kClickTables));
    ASSERT_EQ(table->values.size(), rows * kClickNumbers);
    ASSERT_EQ(table->category.size(), rows * kClickTables.size());
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t t = 0; t < kClickTables.size(); ++t)
        ASSERT_TRUE(0 <= categories(*table, row)[t] && categories(*table, row)[t] < kClickTables[t]);
      ASSERT_LE(table->labels[row], 1);
    }
  }
}

// Written down once, so that no compiler or library may change it.
TEST(Clicks, IsTheSameEverywhere) {
  EXPECT_EQ(fingerprint({"clicks", clicks()}), 0x712ba9f132c8238bU);
}

TEST(Clicks, NumbersAreNormalAndLabelsMixed) {
  const Table& table = clicks().train;
  for (std::size_t j = 0; j < kClickNumbers; ++j) {
    double sum = 0, squares = 0;
    for (std::size_t row = 0; row < table.size(); ++row) {
      const double value = numbers(table, row)[j];
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(table.size());
    EXPECT_NEAR(sum / count, 0, 0.016);  // five standard errors
    EXPECT_NEAR(squares / count, 1, 0.023);
  }
  for (const Table* part : {&clicks().train, &clicks().test}) {
    double positive = 0;
    for (const std::uint8_t label : part->labels) positive += label;
    EXPECT_NEAR(positive / static_cast<double>(part->size()), 0.44, 0.025);
  }
}

TEST(Clicks, PopularityFallsAsOneOverTheRank) {
  const Table& table = clicks().train;
  for (std::size_t t = 0; t < kClickTables.size(); ++t) {
    double harmonic = 0;
    for (int k = kClickTables[t]; k > 0; --k) harmonic += 1.0 / k;
    std::vector<double> counts(static_cast<std::size_t>(kClickTables[t]));
    for (std::size_t row = 0; row < table.size(); ++row)
      ++counts[static_cast<std::size_t>(categories(table, row)[t])];
    for (std::size_t k = 0; k < 7; ++k) {
      const double expected = static_cast<double>(table.size()) / harmonic / static_cast<double>(k + 1);
      EXPECT_NEAR(counts[k], expected, 5 * std::sqrt(expected)) << "table " << t << ", category " << k;
    }
  }
}

// A factorisation machine and its two lesser kin, trained row by row with stochastic gradients.
enum class Sees { kNumbers, kEffects, kPairs };

class Learner {
 public:
  explicit Learner(Sees sees) : sees_(sees) {
    Draws draws(1);
    for (const int size : kClickTables) {
      effects_.emplace_back(static_cast<std::size_t>(size));
      for (Latent& latent : latents_.emplace_back(static_cast<std::size_t>(size)))
        for (double& value : latent) value = 0.3 * (draws.unit() - 0.5);
    }
  }

  double probability(const Table& table, std::size_t row) {
    double score = bias_;
    for (std::size_t j = 0; j < kClickNumbers; ++j) score += slopes_[j] * numbers(table, row)[j];
    sum_ = {};
    for (std::size_t t = 0; t < kClickTables.size(); ++t) {
      const auto id = static_cast<std::size_t>(categories(table, row)[t]);
      if (sees_ != Sees::kNumbers) score += effects_[t][id];
      for (std::size_t f = 0; f < sum_.size() && sees_ == Sees::kPairs; ++f) {
        score += sum_[f] * latents_[t][id][f];
        sum_[f] += latents_[t][id][f];
      }
    }
    return 1 / (1 + std::exp(-score));
  }

  void learn(const Table& table, std::size_t row, double rate) {
    const double step = rate * (probability(table, row) - table.labels[row]), decay = 0.01 * rate;
    bias_ -= step;
    for (std::size_t j = 0; j < kClickNumbers; ++j) slopes_[j] -= step * numbers(table, row)[j];
    for (std::size_t t = 0; t < kClickTables.size(); ++t) {
      const auto id = static_cast<std::size_t>(categories(table, row)[t]);
      effects_[t][id] -= step + decay * effects_[t][id];
      for (std::size_t f = 0; f < sum_.size(); ++f) {
        double& value = latents_[t][id][f];
        value -= step * (sum_[f] - value) + decay * value;
      }
    }
  }

 private:
  using Latent = std::array<double, 4>;
  Sees sees_;
  double bias_ = 0;
  std::array<double, kClickNumbers> slopes_ = {};
  std::vector<std::vector<double>> effects_;
  std::vector<std::vector<Latent>> latents_;
  Latent sum_ = {};
};

double test_accuracy(Sees sees) {
  Learner learner(sees);
  for (int epoch = 1; epoch <= 4; ++epoch)
    for (std::size_t row = 0; row < kClickTrainRows; ++row) learner.learn(clicks().train, row, 0.03 / epoch);
  double right = 0;
  for (std::size_t row = 0; row < kClickTestRows; ++row)
    right += (learner.probability(clicks().test, row) > 0.5) == (clicks().test.labels[row] == 1);
  return right / static_cast<double>(kClickTestRows);
}

TEST(Clicks, CategoriesAndTheirPairsAreWorthLearning) {
  const double by_numbers = test_accuracy(Sees::kNumbers), by_effects = test_accuracy(Sees::kEffects),
               by_pairs = test_accuracy(Sees::kPairs);
  EXPECT_GT(by_numbers, 0.56 + 0.05) << "0.56 is the share of the more frequent label";
  EXPECT_GT(by_effects, by_numbers + 0.05);
  EXPECT_GT(by_pairs, by_effects + 0.03);
}

}  // namespace
}  // namespace accordion
