// A codec from outside the tree: with its list, its build and its place in the tests, it is one like all others.
// codecs_suite_test.cpp is part of this program and says the rest.
#include <gtest/gtest.h>

#include "accordion/compress/codecs.h"
#include "accordion/compress/try_levels.h"

namespace accordion {
namespace {

TEST(AddedCodec, IsKnownByNameEverywhere) {
  EXPECT_EQ(codec_names(), (std::vector<std::string>{"none", "every-other"}));
  const CodecOptions codec = parse_codec("every-other:stride=3");
  EXPECT_EQ(codec_text(codec), "every-other:stride=3,chunked=false");
  EXPECT_EQ(frame_id(codec), 200);
  EXPECT_THROW(parse_codec("every-other:stride=0"), UsageError);
}

TEST(AddedCodec, IsAskedLikeAllOthers) {
  const CodecOptions codec = parse_codec("every-other:stride=1");
  EXPECT_FALSE(traits_of(codec).momentum);
  EXPECT_NE(make_compressor(codec, {{64, 64}}, 2, {}), nullptr) << "as its traits say, though no shorter";
  const std::vector<float> gradient(4096, 1.0f);
  const CodecOptions levels[] = {parse_codec("every-other:stride=2"), NoneOptions{}};
  const auto trials = try_levels(gradient, {{64, 64}}, levels, 2, {});
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].error, 2048);
  EXPECT_EQ(trials[0].bytes, 8192);
}

}  // namespace
}  // namespace accordion
