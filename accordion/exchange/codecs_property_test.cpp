// Every codec with any options, on any contents, over steps, level changes and buckets: the invariants of the
// methods. RC_PARAMS="max_success=5000 seed=..." looks further.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <sstream>

#include "accordion/exchange/codecs_testing.h"

namespace accordion {
namespace {

using namespace testing_codecs;

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
int between(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}
bool coin() {
  return between(0, 1) == 1;
}

template <class T>
T one_of(const std::vector<T>& values) {
  return values[static_cast<std::size_t>(between(0, static_cast<int>(values.size()) - 1))];
}

std::string keep() {
  return "keep=" + one_of<std::string>({"0.001", "0.02", "0.1", "0.25", "0.34", "0.5", "0.75", "0.99", "1"});
}

std::string flag(const char* name) {
  return coin() ? std::string(",") + name + "=true" : "";
}

// Codecs that owe what they do not send. DGC's momentum is not a gradient, so it has none here.
std::string feedback_codec() {
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

std::string dgc() {
  return "dgc:momentum=0," + keep() + ",sample=" + one_of<std::string>({"0.01", "0.3", "1"});
}

std::string unbiased_codec() {
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

std::string any_codec() {
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

Shape any_shape() {
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
const std::vector<Content> kContents = {
    Content::kNormal,   Content::kHeavy, Content::kRankOne, Content::kZero,      Content::kConstant,
    Content::kDenormal, Content::kHuge,  Content::kSparse,  Content::kMinusZero, Content::kTies};

Floats fill(const Shape& shape, Content content, unsigned seed) {
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
std::vector<std::vector<int>> any_buckets(std::size_t tensors, bool all) {
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

Plan any_plan(const Wish& wish) {
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

void describe(const Plan& plan) {
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

std::vector<Outcome> run_logged(const Plan& plan) {
  describe(plan);
  return run(plan);
}

// ---- measures, in double precision

double norm(const Floats& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

double distance(const Floats& a, const Floats& b, double factor = 1) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(factor * a[i] - b[i], 2);
  return std::sqrt(sum);
}

// ---- over steps and ranks

// Whoever shares a bucket with whom, in which order and on how many threads, every rank gets the same bits.
TEST(CodecProperties, AgreeWhateverTheBuckets) {
  holds(200, [] {
    Plan plan = any_plan({.codecs = several(4, any_codec)});
    const auto first = run_logged(plan);
    for (Step& step : plan.steps) {
      std::set<int> members;
      for (const auto& bucket : step.buckets) members.insert(bucket.begin(), bucket.end());
      step.buckets = any_buckets(plan.shapes.size(), true);
      for (auto& bucket : step.buckets) std::erase_if(bucket, [&](int t) { return !members.contains(t); });
    }
    // LAPACK adds up in another order on other numbers of threads.
    if (std::none_of(plan.codecs.begin(), plan.codecs.end(), [](auto& c) { return c.starts_with("atomo"); }))
      plan.threads = between(1, 3);
    const auto second = run(plan);
    for (std::size_t s = 0; s < first.size(); ++s) {
      RC_ASSERT(first[s].kept && second[s].kept);
      for (const auto& means : first[s].means) RC_ASSERT(means == first[s].means[0]);
      RC_ASSERT(second[s].means == first[s].means);
      RC_ASSERT(second[s].residuals == first[s].residuals);
      RC_ASSERT(second[s].traffic.payload_bytes == first[s].traffic.payload_bytes);
      for (const Floats& mean : first[s].means[0])
        for (const float value : mean) RC_ASSERT(std::isfinite(value));
    }
  });
}

// All that the ranks ever put in comes out, once a last step without gradients has sent what they owe.
void expect_nothing_lost(Plan plan, int flush_level) {
  Step last;
  last.levels.assign(plan.shapes.size(), flush_level);
  last.buckets = any_buckets(plan.shapes.size(), true);
  std::vector<Floats> zeros;
  for (const Shape& shape : plan.shapes) zeros.emplace_back(shape.count());
  last.gradients.assign(static_cast<std::size_t>(plan.ranks), zeros);
  plan.steps.push_back(last);
  const auto outcomes = run_logged(plan);

  for (std::size_t t = 0; t < plan.shapes.size(); ++t) {
    std::vector<double> missing(plan.shapes[t].count());
    double largest = 0, unit = 1e-5;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const Floats& mean = outcomes[s].means[0][t];
      if (mean.empty()) continue;
      RC_ASSERT(outcomes[s].kept);
      const std::string& codec = plan.codecs[static_cast<std::size_t>(plan.steps[s].levels[t])];
      // A sum in 16 bits rounds once more for each rank, where no residual can see it.
      if (codec.starts_with("fp16")) unit = std::max(unit, 0x1p-10 * plan.ranks);
      if (codec.starts_with("bf16")) unit = std::max(unit, 0x1p-7 * plan.ranks);
      for (const auto& gradients : plan.steps[s].gradients) {
        largest = std::max(largest, norm(gradients[t]));
        for (std::size_t i = 0; i < missing.size(); ++i) missing[i] += gradients[t][i] / double(plan.ranks);
      }
      for (const auto& residuals : outcomes[s].residuals) largest = std::max(largest, norm(residuals[t]));
      for (std::size_t i = 0; i < missing.size(); ++i) missing[i] -= mean[i];
    }
    double left = 0;
    for (const double value : missing) left += value * value;
    // Below the normal range, rounding is absolute.
    const double allowed = unit * largest + 1e-43 * std::sqrt(static_cast<double>(missing.size()));
    RC_LOG() << "tensor " << t << ": " << std::sqrt(left) << " of " << largest << " is missing\n";
    RC_ASSERT(std::sqrt(left) <= allowed);
    if (flush_level == 0)
      for (const auto& residuals : outcomes.back().residuals) RC_ASSERT(residuals[t].empty());
  }
}

TEST(CodecProperties, LoseNothingOverLevelChanges) {
  holds(250, [] {
    std::vector<std::string> codecs = several(4, feedback_codec);
    codecs.insert(codecs.begin(), "none");
    expect_nothing_lost(any_plan({.codecs = codecs}), 0);
  });
}

TEST(CodecProperties, DgcLosesNothingWithoutMomentum) {
  holds(60, [] {
    std::vector<std::string> codecs = several(3, dgc);
    codecs.push_back("dgc:momentum=0,keep=1");  // Sends all there is.
    expect_nothing_lost(any_plan({.codecs = codecs}), static_cast<int>(codecs.size()) - 1);
  });
}

// Codecs whose messages are added up do with N ranks what they do with one that has the mean.
TEST(CodecProperties, SummedCodecsAreLinear) {
  holds(100, [] {
    const std::string codec =
        one_of<std::string>({"none", "randomk:" + keep(), "randomk:feedback=false," + keep(),
                             "powersgd:approx-rank=" + std::to_string(between(1, 4)), "fp16", "bf16"});
    const double unit = codec == "fp16" ? 0x1p-9 : codec == "bf16" ? 0x1p-6 : codec[0] == 'p' ? 1e-3 : 1e-6;
    Plan plan =
        any_plan({.codecs = {codec}, .contents = {Content::kNormal}, .steps = 3, .all_tensors = true});
    const auto several = run_logged(plan);
    for (Step& step : plan.steps) {
      std::vector<Floats> mean(plan.shapes.size());
      for (std::size_t t = 0; t < mean.size(); ++t) {
        mean[t].resize(plan.shapes[t].count());
        for (std::size_t i = 0; i < mean[t].size(); ++i) {
          double sum = 0;
          for (const auto& gradients : step.gradients) sum += gradients[t][i];
          mean[t][i] = static_cast<float>(sum / plan.ranks);
        }
      }
      step.gradients = {mean};
    }
    plan.ranks = 1;
    const auto one = run(plan);
    for (std::size_t s = 0; s < one.size(); ++s)
      for (std::size_t t = 0; t < plan.shapes.size(); ++t) {
        const double size = std::sqrt(static_cast<double>(plan.shapes[t].count())) *
                            (codec.starts_with("randomk") ? 1000 : 3);
        RC_ASSERT(distance(one[s].means[0][t], several[s].means[0][t]) <= unit * size);
      }
  });
}

// A factor of two goes through to the bit, in any mixture and over level changes.
TEST(CodecProperties, ScaleExactlyByPowersOfTwo) {
  holds(150, [] {
    const auto homogeneous = [] {
      const std::string codec = any_codec();
      for (const char* absolute : {"fp16", "threshold", "sign-vote", "atomo"})
        if (codec.starts_with(absolute)) return "topk:" + keep();
      return codec;
    };
    Plan plan = any_plan({.codecs = several(3, homogeneous),
                          .contents = {Content::kNormal, Content::kHeavy, Content::kSparse, Content::kZero,
                                       Content::kTies, Content::kMinusZero, Content::kConstant}});
    const auto small = run_logged(plan);
    const float factor = std::ldexp(1.0f, between(-20, 20));
    for (Step& step : plan.steps)
      for (auto& gradients : step.gradients)
        for (Floats& gradient : gradients)
          for (float& value : gradient) value *= factor;
    const auto large = run(plan);
    for (std::size_t s = 0; s < small.size(); ++s)
      for (std::size_t t = 0; t < plan.shapes.size(); ++t)
        for (std::size_t i = 0; i < small[s].means[0][t].size(); ++i) {
          RC_LOG() << "step " << s << ", tensor " << t << ", entry " << i << ", factor " << factor << '\n';
          RC_ASSERT(factor * small[s].means[0][t][i] == large[s].means[0][t][i]);
        }
  });
}

// A step that is not finite somewhere leaves no trace in later ones.
TEST(CodecProperties, ForgetABadStep) {
  holds(80, [] {
    const auto steady = [] {  // Whose draws do not depend on the number of the step.
      return one_of<std::string>({"topk:" + keep(), "sign-scaled", "sign-scaled:chunked=true",
                                  "bf16:feedback=true", "threshold:lambda=0.5", "sign-vote", "none",
                                  "powersgd:approx-rank=" + std::to_string(between(1, 3))});
    };
    Plan plan = any_plan({.codecs = several(3, steady), .contents = {Content::kNormal}, .all_tensors = true});
    const auto good = run_logged(plan);
    const auto at = static_cast<std::size_t>(between(0, static_cast<int>(plan.steps.size()) - 1));
    Step bad = plan.steps[at];
    auto& gradients = bad.gradients[static_cast<std::size_t>(between(0, plan.ranks - 1))];
    Floats& spoilt = gradients[static_cast<std::size_t>(between(0, static_cast<int>(gradients.size()) - 1))];
    RC_PRE(!spoilt.empty());
    spoilt[spoilt.size() / 2] = coin() ? std::nanf("") : -std::numeric_limits<float>::infinity();
    // Dense sums keep nothing and need no flag; PowerSGD's first basis is drawn for its step.
    const auto& levels = bad.levels;
    RC_PRE(std::any_of(levels.begin(), levels.end(),
                       [&](int level) { return plan.codecs[static_cast<std::size_t>(level)] != "none"; }));
    RC_PRE(std::none_of(plan.codecs.begin(), plan.codecs.end(),
                        [](auto& c) { return c.starts_with("powersgd"); }) ||
           (at > 0 && plan.codecs.size() == 1));
    plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(at), bad);
    auto with_bad = run(plan);
    RC_LOG() << "bad step " << at << '\n';
    RC_ASSERT(!with_bad[at].kept || gradients.size() > 1 || plan.shapes[0].dims.size() < 2);
    RC_PRE(!with_bad[at].kept);
    with_bad.erase(with_bad.begin() + static_cast<std::ptrdiff_t>(at));
    for (std::size_t s = 0; s < good.size(); ++s) {
      RC_ASSERT(with_bad[s].means == good[s].means);
      RC_ASSERT(with_bad[s].residuals == good[s].residuals);
    }
  });
}

// ---- one rank, one tensor, one step: what the method says

struct Single {
  Shape shape;
  Floats a, sent, left;  // left: empty without error feedback.
  double keep = 0;
};

std::size_t kept(double keep, std::size_t n) {
  return std::clamp<std::size_t>(static_cast<std::size_t>(keep * static_cast<double>(n)),
                                 std::min<std::size_t>(n, 1), n);
}

Single single(const std::string& codec, Content content) {
  Plan plan{.shapes = {any_shape()}, .codecs = {codec}};
  RC_PRE(plan.shapes[0].dims.size() > 1);
  const Floats a = fill(plan.shapes[0], content, static_cast<unsigned>(between(0, 100000)));
  plan.steps = {{.levels = {0}, .buckets = {{0}}, .gradients = {{a}}}};
  const Outcome outcome = run_logged(plan)[0];
  RC_LOG() << "content " << static_cast<int>(content) << '\n';
  RC_ASSERT(outcome.kept);
  Single result{plan.shapes[0], a, outcome.means[0][0], outcome.residuals[0][0], 0};
  if (const auto at = codec.find("keep="); at != std::string::npos)
    result.keep = std::stod(codec.substr(at + 5));
  return result;
}

std::size_t non_zero(const Floats& values) {
  return values.size() - static_cast<std::size_t>(std::count(values.begin(), values.end(), 0.0f));
}

// Each entry is sent as it is or kept as it is.
void expect_split(const Single& s) {
  for (std::size_t i = 0; i < s.a.size(); ++i)
    RC_ASSERT((s.sent[i] == s.a[i] && s.left[i] == 0) || (s.sent[i] == 0 && s.left[i] == s.a[i]));
}

double energy(const Floats& values) {
  return norm(values) * norm(values);
}

TEST(CodecProperties, SparseCodecsSplit) {
  holds(250, [] {
    const std::string codec =
        one_of<std::string>({"topk:" + keep(), "mstopk:" + keep(), "randomk:" + keep(),
                             "randomk:block=true," + keep(), dgc(), "threshold:lambda=0.5"});
    const Single s = single(codec, one_of(kContents));
    expect_split(s);
    const std::size_t n = s.a.size(), k = codec[0] == 'd'
                                              ? static_cast<std::size_t>(std::ceil(s.keep * double(n)))
                                              : kept(s.keep, n);
    if (codec[0] != 't' || codec[1] == 'o') RC_ASSERT(non_zero(s.sent) <= k);
    float least = std::numeric_limits<float>::infinity(), most = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (s.sent[i] != 0) least = std::min(least, std::abs(s.sent[i]));
      most = std::max(most, std::abs(s.left[i]));
    }
    if (codec.starts_with("topk")) {
      RC_ASSERT(least >= most);
      RC_ASSERT(non_zero(s.sent) == std::min(k, non_zero(s.a)));
      RC_ASSERT(energy(s.left) <=
                (1 - double(k) / double(std::max<std::size_t>(n, 1))) * energy(s.a) * (1 + 1e-9));
    }
    if (codec.starts_with("threshold")) RC_ASSERT(least >= 0.5f && most < 0.5f);
    if (codec.starts_with("dgc")) RC_ASSERT(least >= most || non_zero(s.sent) == 0);
  });
}

TEST(CodecProperties, DenseCodecsWithFeedbackContract) {
  holds(250, [] {
    const std::string codec =
        one_of<std::string>({"sign-scaled", "powersgd:approx-rank=" + std::to_string(between(1, 9)),
                             "fp16:feedback=true", "bf16:feedback=true"});
    const Content content = one_of(kContents);
    const Single s = single(codec, content);
    const double whole = energy(s.a), n = static_cast<double>(s.a.size());
    // What rounding may add to a norm: relative, and absolute below the normal range.
    const double slack = 1e-5 * whole + n * 1e-86;
    RC_ASSERT(energy(s.left) <= whole + slack);
    for (std::size_t i = 0; i < s.a.size(); ++i)
      RC_ASSERT(std::abs(double(s.sent[i]) + s.left[i] - s.a[i]) <=
                2e-6 * (norm(s.a) + std::abs(s.sent[i])) + 1e-43);
    if (codec == "sign-scaled" && n > 0) {
      double sum = 0;
      for (const float value : s.a) sum += std::abs(value);
      RC_ASSERT(std::abs(energy(s.left) - (whole - sum * sum / n)) <= slack);
      for (std::size_t i = 0; i < s.a.size(); ++i)
        RC_ASSERT(s.sent[i] == (s.a[i] >= 0 ? std::abs(s.sent[0]) : -std::abs(s.sent[0])));
    }
    if (codec.starts_with("powersgd") && content != Content::kDenormal) {
      // An orthonormal P: |a|^2 = |P Q^T|^2 + |rest|^2, and a matrix of rank one leaves nothing.
      RC_ASSERT(std::abs(energy(s.left) - (whole - energy(s.sent))) <= slack);
      if (content == Content::kRankOne || content == Content::kConstant)
        RC_ASSERT(norm(s.left) <= 1e-5 * norm(s.a));
    }
    const double unit = codec.starts_with("fp16") ? 0x1p-11 : 0x1p-8;
    if (codec.ends_with("feedback=true") && content != Content::kHuge)
      for (std::size_t i = 0; i < s.a.size(); ++i)
        RC_ASSERT(std::abs(s.left[i]) <= unit * std::abs(s.a[i]) + (codec[0] == 'f' ? 0x1p-25 : 1e-40));
  });
}

// Levels are whole numbers of at most s, beside the value itself.
TEST(CodecProperties, QuantisersRoundToANeighbour) {
  holds(250, [] {
    const int bits = one_of<int>({2, 4, 8}), steps = (1 << (bits - 1)) - 1;
    const int block = one_of<int>({1, 7, 64, 512, 100000});
    const bool l2 = coin();
    const Content content = one_of(kContents);
    const Single s =
        single("qsgd:bits=" + std::to_string(bits) + ",block=" + std::to_string(block) +
                   (l2 ? ",norm=l2" : "") + one_of<std::string>({"", ",coding=elias", ",share-scale=true"}),
               content);
    for (std::size_t begin = 0; begin < s.a.size(); begin += static_cast<std::size_t>(block)) {
      const std::size_t end = std::min(s.a.size(), begin + static_cast<std::size_t>(block));
      double scale = 0;
      for (std::size_t i = begin; i < end; ++i)
        scale = l2 ? std::hypot(scale, s.a[i]) : std::max<double>(scale, std::abs(s.a[i]));
      for (std::size_t i = begin; i < end; ++i) {
        RC_LOG() << "entry " << i << ": " << s.a[i] << " became " << s.sent[i] << ", scale " << scale << '\n';
        if (scale == 0) {
          RC_ASSERT(s.sent[i] == 0);
          continue;
        }
        if (content == Content::kDenormal) {  // The levels' distance may itself round.
          RC_ASSERT(std::abs(s.sent[i]) <= 1.1 * scale + 1e-42);
          continue;
        }
        const double level = s.sent[i] * steps / scale;
        RC_ASSERT(std::abs(level - std::round(level)) <= 1e-4);
        RC_ASSERT(std::abs(level) <= steps + 1e-4);
        RC_ASSERT(std::abs(s.sent[i] - s.a[i]) <= (1 + 1e-3) * scale / steps);
      }
    }
  });
}

TEST(CodecProperties, TernaryAndSigns) {
  holds(120, [] {
    const Content content = one_of(kContents);
    const std::string codec = one_of<std::string>(
        {"terngrad", "terngrad:clip=0", "terngrad:share-scale=true", "sign-vote", "sign-vote:count=true"});
    const Single s = single(codec, content);
    const bool zero = non_zero(s.a) == 0;
    float largest = 0, scale = 0;
    for (const float value : s.a) largest = std::max(largest, std::abs(value));
    for (const float value : s.sent) scale = std::max(scale, std::abs(value));
    RC_ASSERT(codec[0] == 's' || scale <= largest);
    for (std::size_t i = 0; i < s.a.size(); ++i) {
      if (codec[0] == 's') {
        RC_ASSERT(s.sent[i] == (zero ? 0.0f : s.a[i] >= 0 ? 1.0f : -1.0f));
      } else {
        RC_ASSERT(s.sent[i] == 0 || (std::abs(s.sent[i]) == scale && (s.sent[i] > 0) == (s.a[i] > 0)));
        // The largest is always sent.
        RC_ASSERT(zero || std::abs(s.a[i]) < largest || s.sent[i] != 0);
      }
    }
  });
}

// The mean square of the rounding error stays below the methods' bounds.
TEST(CodecProperties, QuantisersKeepTheirVariance) {
  constexpr int kDraws = 200;
  const Shape shape{{32, 64}};
  const Floats a = fill(shape, Content::kHeavy, 5);
  for (const int bits : {2, 4, 8})
    for (const std::string norm_name : {"max", "l2"}) {
      Plan plan{.shapes = {shape},
                .codecs = {"qsgd:block=64,bits=" + std::to_string(bits) + ",norm=" + norm_name}};
      plan.steps.assign(kDraws, {.levels = {0}, .buckets = {{0}}, .gradients = {{a}}});
      double error = 0, bound = 0;
      for (const Outcome& outcome : run(plan))
        error += std::pow(distance(a, outcome.means[0][0]), 2) / kDraws;
      const double s = (1 << (bits - 1)) - 1, d = 64;
      for (std::size_t begin = 0; begin < a.size(); begin += 64) {
        const Floats block(a.begin() + static_cast<std::ptrdiff_t>(begin),
                           a.begin() + static_cast<std::ptrdiff_t>(begin + 64));
        float largest = 0;
        for (const float value : block) largest = std::max(largest, std::abs(value));
        bound += norm_name == "l2" ? std::min(d / (s * s), std::sqrt(d) / s) * energy(block)
                                   : d * largest * largest / (4 * s * s);
      }
      EXPECT_LE(error, bound * 1.05) << bits << " bits, " << norm_name;
      EXPECT_GT(error, 0);
    }
}

// ---- bytes

// As the methods' descriptions count them, not as the codecs do.
TEST(CodecProperties, WeighWhatTheMethodsSay) {
  holds(250, [] {
    const Shape shape = any_shape();
    RC_PRE(shape.dims.size() > 1 && shape.count() > 0);
    const std::size_t n = shape.count(), rows = shape.rows(), columns = shape.columns();
    const int ranks = between(1, 5);
    const double fraction = one_of<double>({0.02, 0.1, 0.25, 0.75});
    const std::string keep = "keep=" + std::to_string(fraction);
    const std::size_t k = kept(fraction, n), r = static_cast<std::size_t>(between(1, 9)),
                      d = one_of<std::size_t>({7, 64, 512});
    const std::size_t b = one_of<std::size_t>({2, 4, 8}), blocks = (n + d - 1) / d;
    const std::string qsgd = "qsgd:bits=" + std::to_string(b) + ",block=" + std::to_string(d);
    const std::vector<std::pair<std::string, std::size_t>> weights = {
        {"fp16", 2 * n},
        {"bf16", 2 * n},
        {"topk:" + keep, fraction * ranks >= 1 || k == n ? 4 * n : 8 * k},
        {"mstopk:" + keep, fraction * ranks >= 1 || k == n ? 4 * n : 8 * k},
        {"randomk:" + keep, 4 * k},
        {"sign-vote", 4 * ((n + 31) / 32)},
        {"sign-vote:count=true", n},
        {"sign-scaled", 4 * ((n + 31) / 32) + 4},
        {qsgd, 4 * blocks + (b * n + 7) / 8},
        {qsgd + ",share-scale=true", 4 * blocks + 2 * n},
        {"terngrad", (n + 3) / 4 + 4},
        {"terngrad:share-scale=true", n + 4},
        {"powersgd:approx-rank=" + std::to_string(r), 4 * std::min({r, rows, columns}) * (rows + columns)}};
    const auto& [codec, bytes] = one_of(weights);
    Plan plan{.shapes = {shape}, .codecs = {codec}, .ranks = ranks};
    Step step{.levels = {0}, .buckets = {{0}}, .gradients = {}};
    for (int rank = 0; rank < ranks; ++rank)
      step.gradients.push_back({fill(shape, one_of(kContents), static_cast<unsigned>(rank))});
    plan.steps = {step};
    const Traffic traffic = run_logged(plan)[0].traffic;
    RC_ASSERT(traffic.payload_bytes == bytes);
  });
}

}  // namespace
}  // namespace accordion
