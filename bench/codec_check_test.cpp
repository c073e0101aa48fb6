#include "bench/codec_check.h"

#include <gtest/gtest.h>

#include "accordion/base/error.h"
#include "accordion/compress/codec_cases_testing.h"

namespace accordion::bench {
namespace {

const TensorInfo kInfo{"conv", {{64, 300}}};

GroupStep step_of(const CodecOptions& codec) {
  return run_group(codec, kInfo, 0, Gradients());
}

TEST(CodecCheck, WhatHoldsForAnyCodecHoldsForAll) {
  for (const auto& entry : testing_codecs::codec_entries())
    for (const auto& each : entry.cases) {
      if (each.setting.find("chunked=true") != std::string::npos) continue;  // Not timed.
      const CodecOptions codec = parse_codec(each.setting);
      const GroupStep group = step_of(codec);
      if (group.ranks.empty()) continue;  // Dense.
      EXPECT_NO_THROW(check_any_step(codec, kInfo, group)) << each.setting;
      EXPECT_NO_THROW(check_step(codec, kInfo, group)) << each.setting;
    }
}

TEST(CodecCheck, AWrongMeanIsSeen) {
  const CodecOptions codec = parse_codec("powersgd");
  GroupStep group = step_of(codec);
  for (RankStep& rank : group.ranks)
    for (float& value : rank.mean) value *= 1.5f;
  EXPECT_THROW(check_step(codec, kInfo, group), Error);
  EXPECT_THROW(check_any_step(codec, kInfo, group), Error);

  const CodecOptions unbiased = parse_codec("terngrad");
  group = step_of(unbiased);
  group.ranks[1].mean[5] += 1;
  EXPECT_THROW(check_any_step(unbiased, kInfo, group), Error) << "ranks that disagree";
}

}  // namespace
}  // namespace accordion::bench
