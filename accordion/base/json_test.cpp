#include "accordion/base/json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "accordion/base/read_file.h"
#include "accordion/base/refusal_testing.h"
#include "accordion/base/temporary_folder.h"

namespace accordion {
namespace {

std::string parse_refusal(const std::string& text) {
  return refusal([&] { parse_json(text, "it"); });
}

std::string repeated(const std::string& piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

template <class Value>
std::string value_refusal(const char* json) {
  Value value{};
  return refusal([&] { read_value(parse_json(json, "it"), "x", value); });
}

TEST(ParseJson, NestsAsDeepAsAllowedAndNoDeeper) {
  const auto nested = [](int depth) { return repeated("[", depth) + repeated("]", depth); };
  EXPECT_EQ(parse_refusal(nested(kDeepestJson)), "");
  EXPECT_EQ(parse_refusal(nested(kDeepestJson + 1)), "it: JSON nested more than 100 deep at byte 100");
  EXPECT_EQ(parse_refusal(nested(100'000)), "it: JSON nested more than 100 deep at byte 100");
  EXPECT_EQ(parse_refusal("\"" + repeated("[", 1000) + "\\\"" + repeated("{", 1000) + "\""), "")
      << "brackets in a text are none";
  EXPECT_EQ(parse_refusal("[" + repeated("[],", 1000) + "{}]"), "") << "side by side is not deep";
}

TEST(ParseJson, RefusesWhatWouldTakeForEver) {
  std::string object = "{", allowed = "{";
  for (int i = 0; i < 300'000; ++i) object += "\"" + std::to_string(i) + "\":0,";
  for (int i = 0; i < 5'000; ++i) allowed += "\"" + std::to_string(i) + "\":0,";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(parse_refusal(object + "\"\":0}").find("JSON objects of too many keys"), std::string::npos);
  EXPECT_EQ(parse_refusal(allowed + "\"\":0}"), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(ParseJson, ComplaintsAreShortHoweverLongTheText) {
  EXPECT_EQ(parse_refusal("{\"a\":").find("it is not JSON, or was cut short: "), 0U);
  EXPECT_LT(parse_refusal("\"" + repeated("x", 1'000'000)).size(), 300U);
  EXPECT_LT(value_refusal<int>(("\"" + repeated("x", 1'000'000) + "\"").c_str()).size(), 300U);
  EXPECT_EQ(value_refusal<int>(repeated("[", 90).append(repeated("]", 90)).c_str()),
            "x is a list, expected a whole number");
}

TEST(ReadValue, TakesExactlyItsType) {
  EXPECT_EQ(value_refusal<int>("2147483647"), "");
  EXPECT_EQ(value_refusal<int>("2147483648"), "x is 2147483648, expected a number that fits its type");
  EXPECT_EQ(value_refusal<int>("-2147483649"), "x is -2147483649, expected a number that fits its type");
  EXPECT_EQ(value_refusal<int>("18446744073709551615"),
            "x is 18446744073709551615, expected a number that fits its type");
  EXPECT_EQ(value_refusal<int>("1.5"), "x is 1.5, expected a whole number");
  EXPECT_EQ(value_refusal<int>("1e300"), "x is 1e+300, expected a whole number");
  EXPECT_EQ(value_refusal<std::uint64_t>("-1"), "x is -1, expected a whole number of at least 0");
  EXPECT_EQ(value_refusal<std::uint64_t>("18446744073709551615"), "");
  EXPECT_EQ(value_refusal<bool>("1"), "x is 1, expected true or false");
  EXPECT_EQ(value_refusal<double>("\"1\""), "x is \"1\", expected a number");
  EXPECT_EQ(value_refusal<std::string>("null"), "x is null, expected text");
  EXPECT_EQ(value_refusal<std::vector<std::uint8_t>>("[1,300]"),
            "x is 300, expected a number that fits its type");
  EXPECT_EQ(value_refusal<std::vector<int>>("{}"), "x is an object, expected a list");
}

TEST(ReadFile, ReadsNoFurtherThanAllowed) {
  const TemporaryFolder folder(std::filesystem::temp_directory_path() / "accordion-test-");
  const std::filesystem::path file = folder.path() / "file";
  std::ofstream(file) << "12345";
  EXPECT_EQ(read_file(file, 5), "12345");
  EXPECT_EQ(refusal([&] { read_file(file, 4); }), file.string() + ": 5 bytes, expected at most 4");
  EXPECT_NE(refusal([] { read_file("/dev/zero", 1 << 20); }).find("more than 1048576 bytes"),
            std::string::npos);
  EXPECT_EQ(refusal([&] { read_file(folder.path(), 4); }),
            folder.path().string() + ": cannot read: Is a directory");
}

}  // namespace
}  // namespace accordion
