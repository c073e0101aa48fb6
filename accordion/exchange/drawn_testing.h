// Random codecs, contents, shapes, buckets and levels for property tests.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <sstream>

#include "accordion/compress/codec_cases_testing.h"
#include "accordion/exchange/codecs_testing.h"

namespace accordion::testing_codecs {

template <class Property>
void holds(int cases, Property&& property) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (!std::getenv("RC_PARAMS")) {
    params.maxSuccess = cases;
    params.seed = 1;
  }
  rc::detail::TestMetadata metadata;
  metadata.id = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), metadata, params);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  FAIL() << text.str();
}

// ---- what is drawn

// Not by RapidCheck's size, which keeps the first cases near `low`.
inline int between(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}
inline const Dice kDice{between};

inline bool coin() {
  return kDice.coin();
}
template <class T>
T one_of(const std::vector<T>& values) {
  return kDice.one_of(values);
}
inline std::string keep() {
  return kDice.keep();
}

// Any setting of the codecs that keep this promise and can share a run with each other.
inline std::string codec_with(Promise promise) {
  std::vector<const CodecEntry*> fitting;
  for (const CodecEntry& entry : codec_entries())
    if (entry.promise == promise && !traits_of(parse_codec(entry.name)).momentum) fitting.push_back(&entry);
  return drawn(*one_of(fitting), kDice);
}

// Codecs that owe what they do not send.
inline std::string feedback_codec() {
  return codec_with(Promise::kConserves);
}

inline std::string dgc() {
  return drawn(entry_of("dgc"), kDice);
}

inline std::string any_codec() {
  switch (between(0, 7)) {
    case 0:
      return codec_with(Promise::kNeither);
    case 1:
      return "none";
    case 2:
    case 3:
    case 4:
      return codec_with(Promise::kUnbiased);
    default:
      return feedback_codec();
  }
}

inline Shape any_shape() {
  static const std::vector<std::vector<std::int64_t>> all = {
      {0, 4},   {4, 0},   {1, 1},   {31, 1},  {1, 32}, {33, 1},      {7, 3},   {2, 2},        {5, 2, 3, 3},
      {13, 11}, {300, 7}, {7, 300}, {64, 65}, {17},    {4, 3, 1, 1}, {129, 1}, {16, 8, 3, 3}, {1, 5000}};
  return {one_of(all)};
}

enum class Content {
  kNormal,
  kHeavy,
  kRankOne,
  kZero,
  kConstant,
  kDenormal,
  kHuge,
  kSparse,
  kMinusZero,
  kTies
};
inline const std::vector<Content> kContents = {
    Content::kNormal,   Content::kHeavy, Content::kRankOne, Content::kZero,      Content::kConstant,
    Content::kDenormal, Content::kHuge,  Content::kSparse,  Content::kMinusZero, Content::kTies};

inline Floats fill(const Shape& shape, Content content, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats values(shape.count());
  for (float& value : values) value = normal(random);
  const auto each = [&](auto change) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = change(values[i], i);
  };
  switch (content) {
    case Content::kNormal:
      break;
    case Content::kHeavy:
      return noise(shape.count(), seed);
    case Content::kRankOne: {
      const Floats row = values;
      each([&](float, std::size_t i) { return row[i % shape.columns()] * row[i / shape.columns()]; });
      break;
    }
    case Content::kZero:
      each([](float, std::size_t) { return 0.0f; });
      break;
    case Content::kConstant:
      each([&, first = normal(random)](float, std::size_t) { return first; });
      break;
    case Content::kDenormal:
      each([](float value, std::size_t) { return value * 1e-40f; });
      break;
    case Content::kHuge:
      each([](float value, std::size_t) { return value * 1e30f; });
      break;
    case Content::kSparse:
      each([](float value, std::size_t i) { return i % 19 == 5 ? value : 0.0f; });
      break;
    case Content::kMinusZero:
      each([](float value, std::size_t i) { return i % 3 == 0 ? -0.0f : value; });
      break;
    case Content::kTies:
      each([](float value, std::size_t) { return std::round(value * 2) / 2; });
      break;
  }
  return values;
}

// Tensors in a random order and in buckets of random lengths, perhaps without some.
inline std::vector<std::vector<int>> any_buckets(std::size_t tensors, bool all) {
  std::vector<int> order(tensors);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = tensors; i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(between(0, static_cast<int>(i) - 1))]);
  std::vector<std::vector<int>> buckets(1);
  for (const int t : order) {
    if (!all && between(0, 5) == 0) continue;
    if (between(0, 2) == 0 && !buckets.back().empty()) buckets.emplace_back();
    buckets.back().push_back(t);
  }
  if (buckets.back().empty()) buckets.pop_back();
  return buckets;
}

struct Wish {
  std::vector<std::string> codecs;
  std::vector<Content> contents = kContents;
  int ranks = 5, tensors = 5, steps = 5;  // At most.
  bool all_tensors = false;
};

inline Plan any_plan(const Wish& wish) {
  Plan plan{.codecs = wish.codecs};
  plan.ranks = between(1, wish.ranks);
  for (int t = between(1, wish.tensors); t > 0; --t) plan.shapes.push_back(any_shape());
  std::vector<int> levels(plan.shapes.size());
  for (int s = between(1, wish.steps); s > 0; --s) {
    Step step;
    for (int& level : levels)  // Mostly as before.
      if (plan.steps.empty() || between(0, 2) == 0)
        level = between(0, static_cast<int>(plan.codecs.size()) - 1);
    step.levels = levels;
    step.buckets = any_buckets(plan.shapes.size(), wish.all_tensors);
    step.gradients.resize(static_cast<std::size_t>(plan.ranks));
    for (const Shape& shape : plan.shapes) {
      const Content content = one_of(wish.contents);
      const auto seed = static_cast<unsigned>(between(0, 100000));
      for (std::size_t r = 0; r < step.gradients.size(); ++r)
        step.gradients[r].push_back(fill(shape, content, seed + static_cast<unsigned>(r)));
    }
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

template <class Draw>
std::vector<std::string> several(int most, Draw draw) {
  std::vector<std::string> codecs;
  for (int i = between(1, most); i > 0; --i) codecs.push_back(draw());
  return codecs;
}

inline void describe(const Plan& plan) {
  RC_LOG() << plan.ranks << " ranks; codecs";
  for (const std::string& codec : plan.codecs) RC_LOG() << ' ' << codec;
  RC_LOG() << "; shapes";
  for (const Shape& shape : plan.shapes) {
    RC_LOG() << ' ';
    for (std::size_t i = 0; i < shape.dims.size(); ++i) RC_LOG() << (i > 0 ? "x" : "") << shape.dims[i];
  }
  for (const Step& step : plan.steps) {
    RC_LOG() << "; levels";
    for (const int level : step.levels) RC_LOG() << ' ' << level;
  }
  RC_LOG() << '\n';
}

inline std::vector<Outcome> run_logged(const Plan& plan) {
  describe(plan);
  return run(plan);
}

// ---- measures, in double precision

inline double norm(const Floats& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

inline double distance(const Floats& a, const Floats& b, double factor = 1) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(factor * a[i] - b[i], 2);
  return std::sqrt(sum);
}

}  // namespace accordion::testing_codecs
