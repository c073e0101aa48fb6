#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "accordion/base/hash.h"
#include "accordion/base/json.h"
#include "accordion/base/names.h"
#include "accordion/base/options.h"

namespace accordion {
namespace {

struct Sample {
  double keep = 0.01;
  int rounds = 3;
  bool feedback = true;
  std::string order = "first";
  std::vector<int> marks;
  void fields(auto&& field) {
    field("keep", keep, "Fraction kept.", above(0).up_to(1));
    field("max-rounds", rounds, "Rounds.", at_least(1));
    field("feedback", feedback, "Error feedback.");
    field("order", order, "Order.", one_of({"first", "last"}));
    field("marks", marks, "Marks.", at_least(0));
  }
};

std::string refusal(const std::string& text) {
  Sample sample;
  try {
    parse_fields("topk", text, sample);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(Options, AreReadFromASetting) {
  Sample sample;
  parse_fields("topk", "keep=0.5,max-rounds=7,feedback=false,order=last", sample);
  EXPECT_EQ(sample.keep, 0.5);
  EXPECT_EQ(sample.rounds, 7);
  EXPECT_FALSE(sample.feedback);
  EXPECT_EQ(sample.order, "last");
}

TEST(Options, RefusalsNameOptionValueAndRange) {
  EXPECT_EQ(refusal("keep=0"), "topk: keep=0, expected (0, 1]");
  EXPECT_EQ(refusal("keep=nan"), "topk: keep=nan, expected (0, 1]");
  EXPECT_EQ(refusal("keep=1e999"), "topk: keep=1e999, expected a number that fits its type");
  EXPECT_EQ(refusal("max-rounds=0"), "topk: max-rounds=0, expected at least 1");
  EXPECT_EQ(refusal("max-rounds=2.5"), "topk: max-rounds=2.5, expected a whole number");
  EXPECT_EQ(refusal("feedback=yes"), "topk: feedback=yes, expected true or false");
  EXPECT_EQ(refusal("keep"), "topk: keep has no value, expected keep=VALUE");
  EXPECT_EQ(refusal("kep=1"),
            "topk: unknown option \"kep\"; did you mean \"keep\"? There are: keep, max-rounds, feedback, "
            "order, marks");
  EXPECT_EQ(refusal("order=lats"),
            "topk: unknown order \"lats\"; did you mean \"last\"? There are: first, last");
}

TEST(Options, SurviveJsonWithUnderscoredKeys) {
  Sample sample{.keep = 0.25, .rounds = 9, .feedback = false, .order = "last", .marks = {1, 2}}, read;
  const Json json = to_json(sample);
  EXPECT_EQ(json["max_rounds"], 9);
  from_json(json, read);
  EXPECT_EQ(to_json(read), json);
}

TEST(Options, NumbersAreWrittenShortAndReadBackExactly) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_TRUE(rc::check([](double value) { RC_ASSERT(std::stod(number_text(value)) == value); }));
}

TEST(Names, NearestIsTheOneMeant) {
  const std::vector<std::string> names = {"fashion-mnist", "mnist", "cifar10", "cifar100"};
  EXPECT_EQ(nearest_name("cifar-10", names), "cifar10");
  EXPECT_EQ(nearest_name("fashionmnist", names), "fashion-mnist");
  EXPECT_EQ(nearest_name("imagenet-21k", names), "");
}

TEST(Names, ALongOneIsNeitherComparedNorRepeated) {
  const std::string name(50'000'000, 'x');
  EXPECT_EQ(unknown_name("codec", name, {"topk", "none"}),
            "unknown codec \"" + name.substr(0, 60) + "...\". There are: topk, none");
}

TEST(Hash, EveryBitAndTheLengthCount) {
  EXPECT_TRUE(rc::check([](std::vector<std::uint8_t> bytes) {
    RC_PRE(!bytes.empty());
    const auto hash = [](const auto& b) { return Hash().add(std::as_bytes(std::span(b))).value(); };
    const auto before = hash(bytes);
    auto longer = bytes;
    longer.push_back(0);
    RC_ASSERT(hash(longer) != before);
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    bytes[at] ^= static_cast<std::uint8_t>(1u << *rc::gen::inRange(0, 8));
    RC_ASSERT(hash(bytes) != before);
  }));
}

}  // namespace
}  // namespace accordion
