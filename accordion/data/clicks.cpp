// Everything that decides a value is integer arithmetic, in units of 1/65536 (kOne): floating point would
// leave the last bit, and with it a label, to the compiler's choice of instructions.
#include "accordion/data/clicks.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "accordion/data/draws.h"

namespace accordion {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::int64_t kOne = 1 << 16;
constexpr int kLatent = 4;
constexpr std::int64_t kBias = -kOne / 4;  // 44 rows in 100 are clicks.

// About normal, with mean 0 and variance 1: the sum of twelve uniform draws of 16 bits, less its mean.
std::int64_t normal(Draws& draws) {
  std::int64_t sum = 0;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t bits = draws.next();
    for (int shift = 0; shift < 64; shift += 16) sum += static_cast<std::int64_t>(bits >> shift & 0xffff);
  }
  return sum - 6 * 0xffff;
}

// Categories 0, 1, 2 ... with probabilities as 1, 1/2, 1/3 ...
class Popularity {
 public:
  explicit Popularity(int categories) {
    std::uint32_t sum = 0;
    for (int i = 1; i <= categories; ++i) up_to_.push_back(sum += kFirst / static_cast<std::uint32_t>(i));
  }
  int draw(Draws& draws) const {
    const std::uint32_t point = draws.below(up_to_.back());
    return static_cast<int>(std::upper_bound(up_to_.begin(), up_to_.end(), point) - up_to_.begin());
  }

 private:
  static constexpr std::uint32_t kFirst = 1 << 26;  // The sum of 20,000 terms is then below 2^30.
  std::vector<std::uint32_t> up_to_;
};

struct Category {
  std::int64_t effect = 0;
  std::array<std::int64_t, kLatent> latent = {};
};

struct HiddenModel {
  std::array<std::int64_t, kClickNumbers> slopes = {};
  std::vector<std::vector<Category>> tables;
};

// The divisors give numbers, effects and pairs variances of about 0.4, 0.5 and 0.9, beside the noise's 0.25.
HiddenModel hidden_model() {
  HiddenModel model;
  Draws draws(Hash().add("clicks: hidden model").add(kSeed).value());
  for (std::int64_t& slope : model.slopes) slope = normal(draws) / 6;
  for (const int categories : kClickTables) {
    auto& table = model.tables.emplace_back(static_cast<std::size_t>(categories));
    for (Category& category : table) {
      category.effect = normal(draws) / 4;
      for (std::int64_t& value : category.latent) value = normal(draws) * 3 / 10;
    }
  }
  return model;
}

// Over all pairs of categories, in units of 1/65536^2: half of (the square of the sum less the sum of
// squares).
std::int64_t pair_score(std::span<const Category* const> categories) {
  std::int64_t twice = 0;
  for (std::size_t i = 0; i < kLatent; ++i) {
    std::int64_t sum = 0;
    for (const Category* category : categories) {
      sum += category->latent[i];
      twice -= category->latent[i] * category->latent[i];
    }
    twice += sum * sum;
  }
  return twice / 2;
}

class ClickLog {
 public:
  ClickLog() {
    for (const int categories : kClickTables) popularity_.emplace_back(categories);
  }

  Table rows(std::string_view name, std::size_t count) const {
    Table table{.numbers = kClickNumbers,
                .tables = {kClickTables.begin(), kClickTables.end()},
                .values = {},
                .category = {},
                .labels = {}};
    table.values.reserve(count * kClickNumbers);
    table.category.reserve(count * kClickTables.size());
    table.labels.reserve(count);
    Draws draws(Hash().add("clicks: rows").add(name).add(kSeed).value());
    for (std::size_t i = 0; i < count; ++i) append_row(draws, table);
    return table;
  }

 private:
  void append_row(Draws& draws, Table& table) const {
    std::int64_t score = (kBias + normal(draws) / 2) * kOne;
    for (const std::int64_t slope : model_.slopes) {
      const std::int64_t value = normal(draws);
      score += slope * value;
      table.values.push_back(static_cast<float>(value) / static_cast<float>(kOne));  // exact: 20 bits
    }
    std::array<const Category*, kClickTables.size()> categories;
    for (std::size_t t = 0; t < categories.size(); ++t) {
      const int id = popularity_[t].draw(draws);
      table.category.push_back(id);
      categories[t] = &model_.tables[t][static_cast<std::size_t>(id)];
      score += categories[t]->effect * kOne;
    }
    table.labels.push_back(score + pair_score(categories) > 0);
  }

  const HiddenModel model_ = hidden_model();
  std::vector<Popularity> popularity_;
};

}  // namespace

TableSet make_clicks() {
  const ClickLog log;
  return {.train = log.rows("train", kClickTrainRows), .test = log.rows("test", kClickTestRows)};
}

}  // namespace accordion
