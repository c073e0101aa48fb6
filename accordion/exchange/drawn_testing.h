// Random codecs, contents, shapes, buckets and levels for property tests.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <sstream>

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
inline bool coin() {
  return between(0, 1) == 1;
}

template <class T>
T one_of(const std::vector<T>& values) {
  return values[static_cast<std::size_t>(between(0, static_cast<int>(values.size()) - 1))];
}

inline std::string keep() {
  return "keep=" + one_of<std::string>({"0.001", "0.02", "0.1", "0.25", "0.34", "0.5", "0.75", "0.99", "1"});
}

inline std::string flag(const char* name) {
  return coin() ? std::string(",") + name + "=true" : "";
}

// Codecs that owe what they do not send. DGC's momentum is not a gradient, so it has none here.
inline std::string feedback_codec() {
  switch (between(0, 8)) {
    case 0:
      return "topk:" + keep();
    case 1:
      return "mstopk:" + keep() + ",samples=" + std::to_string(between(1, 30));
    case 2:
      return "randomk:" + keep() + flag("block");
    case 3:
      return "sign-scaled";
    case 4:
      return "sign-scaled:chunked=true";
    case 5:
      return "threshold:lambda=" + one_of<std::string>({"1e-42", "0.01", "0.5", "3", "1e20"});
    case 6:
      return one_of<std::string>({"fp16", "bf16"}) + ":feedback=true";
    default:
      return "powersgd:approx-rank=" + std::to_string(between(1, 9)) + (coin() ? ",warm-start=false" : "");
  }
}

inline std::string dgc() {
  return "dgc:momentum=0," + keep() + ",sample=" + one_of<std::string>({"0.01", "0.3", "1"});
}

inline std::string unbiased_codec() {
  switch (between(0, 5)) {
    case 0:
      return "terngrad:clip=" + one_of<std::string>({"0", "1", "2.5"}) +
             one_of<std::string>({"", ",share-scale=true", ",chunked=true"});
    case 1:
      return "atomo:budget=" + one_of<std::string>({"0.5", "1", "3.5"});
    case 2:
      return "randomk:feedback=false," + keep() + flag("block");
    default: {
      const std::string codec = "qsgd:bits=" + one_of<std::string>({"2", "4", "8"}) +
                                ",block=" + one_of<std::string>({"1", "7", "64", "512", "100000"}) +
                                one_of<std::string>({"", ",norm=l2"});
      return codec + one_of<std::string>({"", "", ",coding=elias", ",share-scale=true", ",chunked=true"});
    }
  }
}

inline std::string any_codec() {
  switch (between(0, 7)) {
    case 0:
      return "sign-vote" + one_of<std::string>({"", ":count=true", ":chunked=true"});
    case 1:
      return one_of<std::string>({"none", "fp16", "bf16"});
    case 2:
    case 3:
    case 4:
      return unbiased_codec();
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
