// Every codec with any options, on any contents, over steps, level changes and buckets: what must hold
// whatever the method. RC_PARAMS="max_success=5000 seed=..." looks further.
#include "accordion/exchange/drawn_testing.h"

namespace accordion {
namespace {

using namespace testing_codecs;

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
      if (const double rounding = entry_of(codec).rounding; rounding > 1e-5)
        unit = std::max(unit, rounding * plan.ranks);
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
      return entry_of(codec).exactly ? codec : "topk:" + keep();
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

}  // namespace
}  // namespace accordion
