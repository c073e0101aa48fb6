// What the exchange gives, to the last bit: hashes over every codec, several ranks, uneven weights and
// changes of level. A change that is not meant to change results leaves them alone; one that is records them
// anew:
//
//   exchange_test --gtest_filter='Golden.*'     prints what it got, as compress/codec_cases_testing.h has it
//
// Gradients come from integers, and one instruction set at a time is used, so the hashes are those of any
// machine that has it. ATOMO's depend on the machine's LAPACK and are printed only.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstdio>

#include "accordion/base/hash.h"
#include "accordion/base/random.h"
#include "accordion/comm/loopback.h"
#include "accordion/compress/codec_cases_testing.h"
#include "accordion/exchange/exchange.h"

namespace accordion {
namespace {

using testing_codecs::codec_entries;
using testing_codecs::CodecEntry;
using testing_codecs::Golden;

const Golden kDense{"none", "none", 0xe0a0855c0063c95a, 0xe0a0855c0063c95a};

std::vector<Golden> all_golden() {
  std::vector<Golden> all = {kDense};
  for (const CodecEntry& entry : codec_entries())
    all.insert(all.end(), entry.golden.begin(), entry.golden.end());
  return all;
}

const std::vector<TensorInfo> kTensors = {{"conv", {{16, 9, 3, 3}}}, {"bias", {{17}}},
                                          {"square", {{64, 65}}},    {"tall", {{300, 7}}},
                                          {"wide", {{5, 401}}},      {"tiny", {{3, 2}}}};

// Most entries small, a few large.
std::vector<float> gradient(std::size_t count, std::uint64_t seed) {
  RandomStream draws(RandomKey{mix(seed)});
  std::vector<float> values(count);
  for (float& value : values) {
    const float x = static_cast<float>(static_cast<std::int32_t>(draws.next())) * 0x1p-31f;
    value = x * x * x;
  }
  return values;
}

// Two buckets, as backward fills them: the last tensors first.
const std::vector<std::vector<int>> kBuckets = {{5, 4, 3}, {2, 1, 0}};

void run_steps(Exchange& exchange, const Communicator& comm, Hash& hash) {
  constexpr int kSteps = 9;
  for (int step = 0; step < kSteps; ++step) {
    exchange.set_epoch(step / 3);
    // Mild, strong, then each tensor in turn dense, and dense for all, which shows what was still owed.
    std::vector<int> levels(kTensors.size(), step < 3 ? 0 : step < 6 ? 1 : 2);
    if (step == 6 || step == 7)
      for (std::size_t i = 0; i < levels.size(); ++i) levels[i] = (static_cast<int>(i) + step) % 3;
    exchange.set_levels(levels);
    // One step in which the ranks have different numbers of samples.
    exchange.set_weight(step == 4 ? 2.0 * (comm.rank() + 1) / (comm.size() + 1) : 1);
    for (const std::vector<int>& members : kBuckets) {
      std::vector<float> bucket;
      std::vector<Slice> slices;
      for (const int t : members) {
        const std::size_t count = kTensors[static_cast<std::size_t>(t)].shape.count();
        const auto values =
            gradient(count, static_cast<std::uint64_t>(1000 * step + 10 * t + 100000 * comm.rank()));
        slices.push_back({t, bucket.size(), count});
        bucket.insert(bucket.end(), values.begin(), values.end());
      }
      exchange.mean(bucket, slices);
      hash.add(std::as_bytes(std::span(bucket)));
    }
    EXPECT_TRUE(exchange.end_step());
  }
  const Traffic traffic = exchange.take_epoch_stats().traffic;
  for (const std::uint64_t count : {traffic.payload_bytes, traffic.wire_bytes, traffic.paper_floats})
    hash.add(count);
  // In single precision: their last bits are those of an instruction set's order of additions.
  const std::vector<double> norms = exchange.take_window().norms;
  const std::vector<float> rounded(norms.begin(), norms.end());
  hash.add(std::as_bytes(std::span(rounded)));
}

// All ranks decode the same: one hash for 1, 2, 3 and 4 of them.
std::uint64_t hash_of(const std::string& mild, const std::string& strong) {
  Hash all;
  for (const bool published : {false, true})
    for (int ranks = 1; ranks <= 4; ++ranks) {
      std::vector<std::uint64_t> hashes(static_cast<std::size_t>(ranks));
      run_loopback(ranks, [&](Communicator& comm) {
        std::vector<CodecOptions> levels = {parse_codec(mild), parse_codec(strong)};
        // DGC keeps the momentum at all levels or at none.
        levels.push_back(mild.starts_with("dgc") ? levels[0] : CodecOptions(NoneOptions{}));
        Exchange exchange(
            comm, kTensors,
            {.levels = levels, .seed = 5, .track = {.norms = comm.rank() == 0}, .published = published});
        Hash hash;
        run_steps(exchange, comm, hash);
        hashes[static_cast<std::size_t>(comm.rank())] = hash.value();
      });
      all.add(hashes[0]);  // The norms are rank 0's; that ranks agree is tested elsewhere.
    }
  return all.value();
}

class Target {
 public:
  explicit Target(std::int64_t target) { hwy::SetSupportedTargetsForTest(target); }
  ~Target() { hwy::SetSupportedTargetsForTest(0); }
};

bool has(std::int64_t target) {
  for (const std::int64_t present : hwy::SupportedAndGeneratedTargets())
    if (present == target) return true;
  return false;
}

TEST(Golden, EveryCodecHasRecordedResults) {
  const std::vector<Golden> all = all_golden();
  for (const std::string& name : codec_names())
    EXPECT_TRUE(
        std::any_of(all.begin(), all.end(),
                    [&](const Golden& golden) { return codec_name(parse_codec(golden.mild)) == name; }))
        << name << ": compress/codec_cases_testing.h has no hash of it";
}

TEST(Golden, ResultsAreThoseRecorded) {
#if HWY_ARCH_X86
  if (!has(HWY_SSE4) && !has(HWY_AVX2)) GTEST_SKIP() << "neither SSE4 nor AVX2 on this machine";
  for (const Golden& golden : all_golden()) {
    std::uint64_t got[2] = {golden.sse4, golden.avx2};
    for (const auto& [place, target] : {std::pair{0, HWY_SSE4}, {1, HWY_AVX2}}) {
      if (!has(target)) continue;
      const Target only(target);
      got[place] = hash_of(golden.mild, golden.strong);
    }
    std::printf("    {\"%s\", \"%s\", 0x%016llx, 0x%016llx},\n", golden.mild.c_str(), golden.strong.c_str(),
                static_cast<unsigned long long>(got[0]), static_cast<unsigned long long>(got[1]));
    if (golden.mild.starts_with("atomo")) continue;
    EXPECT_EQ(got[0], golden.sse4) << golden.mild << ", " << golden.strong << " with SSE4";
    EXPECT_EQ(got[1], golden.avx2) << golden.mild << ", " << golden.strong << " with AVX2";
  }
#else
  GTEST_SKIP() << "the recorded hashes are of x86";
#endif
}

}  // namespace
}  // namespace accordion
