#include "accordion/compress/codecs.h"

#include <gtest/gtest.h>

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
    EXPECT_STREQ(error.what(),
                 "unknown codec \"nome\"; did you mean \"none\"? There are: none, fp16, bf16, topk, mstopk, "
                 "randomk, dgc, "
                 "sign-vote, sign-scaled, qsgd, terngrad, powersgd, atomo, threshold");
  }
  EXPECT_THROW(parse_codec("none:keep=1"), UsageError);
}

}  // namespace
}  // namespace accordion
