// What the fuzzers do, from a fixed seed: no message that a decoder cannot take does harm. Meant for a build
// with sanitizers; without them it still catches what crashes or throws the wrong thing.
#include <gtest/gtest.h>

#include <random>

#include "accordion/compress/codec_cases_testing.h"
#include "fuzz/decode.h"

namespace accordion {
namespace {

std::vector<std::string> settings() {
  std::vector<std::string> all;
  for (const auto& entry : testing_codecs::codec_entries())
    for (const auto& own : entry.cases) all.push_back(own.setting);
  return all;
}

class DecodeBytes : public ::testing::TestWithParam<std::string> {};

// The changes start from messages that would have been accepted.
TEST_P(DecodeBytes, AcceptsWhatWasEncoded) {
  for (std::uint8_t shape = 0; shape < 10; ++shape)
    for (std::uint8_t ranks = 0; ranks < 4; ++ranks) {
      const std::uint8_t input[] = {shape, ranks, ranks};
      EXPECT_TRUE(decode_bytes(parse_codec(GetParam()), input)) << int{shape} << " on " << ranks + 1;
    }
}

TEST_P(DecodeBytes, RefusesOrSurvivesTheRest) {
  const CodecOptions codec = parse_codec(GetParam());
  std::mt19937 random(1);
  std::vector<std::uint8_t> input;
  int refused = 0, accepted = 0;
  for (int run = 0; run < 1000; ++run) {
    input.resize(4 + random() % (run % 16 == 0 ? 2000 : 60));
    for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(random());
    // Mostly one kind of change at a time, and often only in the second message or step.
    if (run % 2 == 0) input[3] = static_cast<std::uint8_t>(1u << random() % 8);
    if (run % 8 == 1) input[3] = 0;
    ++(decode_bytes(codec, input) ? accepted : refused);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(All, DecodeBytes, ::testing::ValuesIn(settings()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace accordion
