// What each method says of one rank, one tensor and one step, on any contents; how much it sends; where it loses
// nothing, and where it is right on average.
#include "accordion/exchange/drawn_testing.h"

namespace accordion {
namespace {

using namespace testing_codecs;

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

TEST(CodecMethods, SparseCodecsSplit) {
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

TEST(CodecMethods, DenseCodecsWithFeedbackContract) {
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
TEST(CodecMethods, QuantisersRoundToANeighbour) {
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

TEST(CodecMethods, TernaryAndSigns) {
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
TEST(CodecMethods, QuantisersKeepTheirVariance) {
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
TEST(CodecMethods, WeighWhatTheMethodsSay) {
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

// At its lossless setting a codec gives the mean itself.
TEST(LosslessCodecs, GiveTheMean) {
  const EveryShape all;
  for (const auto& [setting, tolerance] : {std::pair{"none", 0.0},
                                           {"topk:keep=1", 1e-6},
                                           {"randomk:keep=1", 1e-6},
                                           {"powersgd:approx-rank=64", 1e-4},
                                           {"threshold:lambda=1e-30", 1e-6},
                                           {"atomo:budget=64", 1e-4}})
    run_loopback(3, [&, setting = setting, tolerance = tolerance](Communicator& comm) {
      Exchange exact(comm, all.tensors, {}),
          coded(comm, all.tensors, {.levels = {parse_codec(setting)}, .routing = kCompressAll});
      auto a = noise(all.size, static_cast<unsigned>(comm.rank())), b = a;
      exact.mean(a, all.slices);
      exact.end_step();
      coded.mean(b, all.slices);
      coded.end_step();
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(a[i]))) << setting << " at " << i;
    });
}

// The mean of many draws is the mean of the gradients, within six of its own deviations.
TEST(UnbiasedCodecs, AreRightOnAverage) {
  const std::vector<TensorInfo> tensors = {{"w", {{12, 9}}}};
  const std::vector<Slice> slices = {{0, 0, 108}};
  for (const char* setting : {"qsgd:bits=2,block=32", "qsgd:bits=4", "qsgd:bits=4,coding=elias,norm=l2",
                              "qsgd:bits=4,share-scale=true", "qsgd:bits=4,chunked=true", "terngrad:clip=0",
                              "terngrad:clip=0,chunked=true", "terngrad:clip=0,share-scale=true",
                              "randomk:keep=0.25,feedback=false", "atomo:budget=2"})
    run_loopback(2, [&](Communicator& comm) {
      constexpr int kDraws = 4000;
      Exchange exchange(comm, tensors,
                        {.levels = {parse_codec(setting)}, .routing = kCompressAll, .seed = 3});
      std::vector<double> sum(108), squares(108);
      for (int draw = 0; draw < kDraws; ++draw) {
        auto gradient = noise(108, static_cast<unsigned>(comm.rank()));
        exchange.mean(gradient, slices);
        exchange.end_step();
        for (std::size_t i = 0; i < 108; ++i) {
          sum[i] += gradient[i];
          squares[i] += static_cast<double>(gradient[i]) * gradient[i];
        }
      }
      const auto g0 = noise(108, 0), g1 = noise(108, 1);
      for (std::size_t i = 0; i < 108; ++i) {
        const double mean = sum[i] / kDraws, expected = (g0[i] + g1[i]) / 2;
        const double deviation = std::sqrt(std::max(0.0, squares[i] / kDraws - mean * mean));
        EXPECT_NEAR(mean, expected, 6 * deviation / std::sqrt(kDraws) + 1e-3 * std::abs(expected) + 1e-6)
            << setting << " at " << i;
      }
    });
}

}  // namespace
}  // namespace accordion
