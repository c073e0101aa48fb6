#include "accordion/compress/codecs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace accordion {
namespace {

TEST(Codecs, AreReadAndWrittenAlike) {
  for (const std::string& name : codec_names()) {
    const std::string text = codec_text(parse_codec(name));
    EXPECT_EQ(codec_text(parse_codec(text)), text);
  }
}

TEST(Codecs, UnknownOnesAreRefusedWithWhatThereIs) {
  try {
    parse_codec("nome");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(),
              "unknown codec \"nome\"; did you mean \"none\"? There are: " + join(codec_names()));
  }
  EXPECT_THROW(parse_codec("none:keep=1"), UsageError);
}

// Ranks of different builds tell each other's messages by these.
TEST(Codecs, AreCalledAsEverInAFrame) {
  const std::map<std::string, int> ids = {
      {"none", 0},      {"fp16", 1},      {"bf16", 2},      {"topk", 3},        {"mstopk", 4},
      {"randomk", 5},   {"dgc", 6},       {"sign-vote", 7}, {"sign-scaled", 8}, {"qsgd", 9},
      {"terngrad", 10}, {"powersgd", 11}, {"atomo", 12},    {"threshold", 13}};
  for (const auto& [name, id] : ids) EXPECT_EQ(frame_id(parse_codec(name)), id) << name;
}

TEST(Codecs, AreMeasuredInAUsualSettingUnlessTheyAreSlow) {
  const std::vector<std::string> usual = usual_settings();
  std::size_t measured = 0;
  for (const std::string& name : codec_names()) {
    const CodecOptions codec = parse_codec(name);
    const bool found = std::any_of(usual.begin(), usual.end(), [&](const std::string& setting) {
      return codec_text(parse_codec(setting)) == codec_text(codec);
    });
    EXPECT_EQ(found, name != "none" && !traits_of(codec).slow) << name;
    measured += found;
  }
  EXPECT_EQ(measured, usual.size());
  EXPECT_EQ(std::count(usual.begin(), usual.end(), "topk:keep=0.01"), 1) << "what it is set to is told";
}

TEST(Codecs, TurnTheirDialsAndNothingElse) {
  int dials = 0;
  for (const std::string& name : codec_names()) {
    const CodecOptions codec = parse_codec(name);
    const auto dial = traits_of(codec).dial;
    if (!dial) continue;
    ++dials;
    EXPECT_GT(dial->mild, dial->strong) << name;
    for (const double value : {dial->mild, dial->strong}) {
      const CodecOptions turned = with_dial(codec, value);
      EXPECT_EQ(dial_value(turned), value) << name;
      EXPECT_EQ(codec_text(with_dial(turned, dial_value(codec))), codec_text(codec)) << name;
      EXPECT_NO_THROW(check_levels({&turned, 1})) << name;
    }
    EXPECT_GT(payload_bytes(with_dial(codec, dial->mild), {{64, 64}}, 2),
              payload_bytes(with_dial(codec, dial->strong), {{64, 64}}, 2))
        << name;
  }
  EXPECT_GE(dials, 6);
}

TEST(Codecs, TellHowManyRanksAddUp) {
  const auto refusal = [](const char* setting, int world) -> std::string {
    const CodecOptions levels[] = {NoneOptions{}, parse_codec(setting)};
    try {
      check_ranks(levels, world);
    } catch (const UsageError& error) {
      EXPECT_THROW(make_compressor(levels[1], {{64, 64}}, world, {}), UsageError);
      return error.what();
    }
    EXPECT_NE(make_compressor(levels[1], {{64, 64}}, world, {}), nullptr);
    return "";
  };
  EXPECT_EQ(refusal("sign-vote:count=true", 127), "");
  EXPECT_EQ(refusal("sign-vote:count=true", 128),
            "sign-vote: count=true on 128 ranks, expected at most 127: a byte holds no more");
  EXPECT_EQ(refusal("sign-vote", 128), "");
  EXPECT_EQ(refusal("qsgd:bits=8,share-scale=true", 258), "");
  EXPECT_EQ(refusal("qsgd:bits=8,share-scale=true", 259),
            "qsgd: share-scale=true on 259 ranks, expected at most 258: their sum must fit 16 bits");
  EXPECT_EQ(refusal("qsgd:bits=2,share-scale=true", 259), "");
  EXPECT_EQ(refusal("terngrad:share-scale=true", 32767), "");
  EXPECT_NE(refusal("terngrad:share-scale=true", 32768), "");
}

// Momentum of its own, a limit on the whole model, a rate that is too large: asked of any codec.
TEST(Codecs, SayWhatIsParticularToThem) {
  const CodecTraits dgc = traits_of(parse_codec("dgc:momentum=0.8,nesterov=true,clip=3"));
  ASSERT_TRUE(dgc.momentum);
  EXPECT_EQ(dgc.momentum->factor, 0.8);
  EXPECT_TRUE(dgc.momentum->nesterov);
  EXPECT_EQ(dgc.model_clip, 3);
  for (const std::string& name : codec_names()) {
    const CodecTraits traits = traits_of(parse_codec(name));
    EXPECT_EQ(traits.momentum.has_value(), name == "dgc") << name;
    EXPECT_EQ(std::isfinite(traits.rate.most), name == "sign-vote") << name;
  }
}

TEST(Codecs, AreRoutedByWhatTheySave) {
  const auto compresses = [](const char* setting, Shape shape, Routing routing = {}) {
    return make_compressor(parse_codec(setting), shape, 4, routing) != nullptr;
  };
  EXPECT_FALSE(compresses("topk", {{5000}})) << "one dimension";
  EXPECT_FALSE(compresses("topk", {{30, 30}})) << "few entries";
  EXPECT_TRUE(compresses("topk", {{30, 30}}, {.published = true}));
  EXPECT_FALSE(compresses("none", {{64, 64}}, {.published = true}));
  EXPECT_FALSE(compresses("topk:keep=0.3", {{64, 64}})) << "as long as dense";
  EXPECT_TRUE(compresses("dgc:keep=1", {{64, 64}})) << "whose momentum is its own";
  EXPECT_TRUE(compresses("powersgd:approx-rank=15", {{64, 64}}));
  EXPECT_FALSE(compresses("powersgd:approx-rank=16", {{64, 64}})) << "only half as long";
  EXPECT_TRUE(compresses("powersgd:approx-rank=16", {{64, 64}}, {.min_rate = 1.5}));
  EXPECT_TRUE(compresses("atomo:budget=31.5", {{32, 64}}));
  EXPECT_FALSE(compresses("atomo:budget=32", {{32, 64}}));
  EXPECT_TRUE(compresses("threshold", {{64, 64}}));
  EXPECT_TRUE(compresses("qsgd:bits=8,block=1,coding=elias", {{64, 64}}));
  EXPECT_FALSE(compresses("qsgd:bits=8,block=1", {{64, 64}}));
}

}  // namespace
}  // namespace accordion
