#include "accordion/run/recorded.h"

#include <gtest/gtest.h>

#include "accordion/base/json.h"
#include "accordion/base/refusal_testing.h"
#include "accordion/run/decide_again.h"

namespace accordion {
namespace {

std::string tensors_refusal(const char* text) {
  return refusal<UsageError>([&] { recorded_tensors(parse_json(text, "it")); });
}

TEST(Recorded, TensorsOfASizeThatThereCanBe) {
  const auto tensors = recorded_tensors(parse_json(R"({"tensors":[{"name":"w","shape":[3,4]}]})", "it"));
  ASSERT_TRUE(tensors);
  EXPECT_EQ((*tensors)[0].shape.count(), 12U);
  EXPECT_FALSE(recorded_tensors(parse_json("{}", "it")));
  EXPECT_EQ(tensors_refusal(R"({"tensors":3})"),
            "config.json: tensors is 3, expected a list of objects with name and shape");
  EXPECT_EQ(tensors_refusal(R"({"tensors":[{"name":"w"}]})"),
            "config.json: no \"shape\", expected what accordion train writes");
  EXPECT_EQ(tensors_refusal(R"({"tensors":[{"name":"w","shape":[-1]}]})"),
            "config.json: the shape of w: dimension=-1, expected [0, 1e+13]");
  EXPECT_EQ(tensors_refusal(R"({"tensors":[{"name":"w","shape":[4294967296,4294967296]}]})"),
            "config.json: the shape of w: elements=18446744073709551616, expected [0, 1e+13]");
}

TEST(Recorded, WorkersAndOptions) {
  const auto workers = [](const char* text) {
    return refusal<UsageError>([&] { recorded_workers(parse_json(text, "it")); });
  };
  EXPECT_EQ(workers(R"({"workers":4})"), "");
  EXPECT_EQ(workers(R"({"workers":"4"})"), "config.json: workers is \"4\", expected a whole number");
  EXPECT_EQ(workers(R"({"workers":-4})"), "config.json: a run: workers=-4, expected [1, 1e+06]");
  const auto options = [](const char* text) {
    return refusal<UsageError>([&] { recorded_options(parse_json(text, "it")); });
  };
  EXPECT_EQ(options(R"({"options":{"lr":0.5}})"), "");
  EXPECT_EQ(options("{}"), "config.json: no \"options\", expected what accordion train writes");
  EXPECT_EQ(options(R"({"options":{"lr":"fast"}})"),
            "config.json: option \"lr\" is \"fast\", expected a number");
  EXPECT_EQ(options(R"({"options":{"epochs":4294967297}})"),
            "config.json: option \"epochs\" is 4294967297, expected a number that fits its type");
}

// A controller indexes by level: a record that has other numbers of them is no record of its run.
TEST(DecideAgain, RefusesErrorsOfAnotherNumberOfLevels) {
  const ControlOptions control{.controller = "lgreco", .levels = "none;topk:keep=0.1;topk:keep=0.01"};
  const auto complaint = [&](std::vector<double> errors, std::vector<double> bytes) {
    RecordedWindow window;
    window.layers.push_back({.name = "w", .level_errors = errors, .level_bytes = bytes});
    RecordedWindow next = window;
    next.window = 1;
    const auto controller = make_controller(control, 1, 3);
    return refusal<UsageError>([&] { decide_again({window, next}, *controller, 3, "lgreco"); });
  };
  EXPECT_EQ(complaint({0, 1, 2}, {9, 5, 1}), "");
  EXPECT_EQ(complaint({1}, {9}),
            "decide: epoch 0: layer w has 1 level_errors and 1 level_bytes, expected 3 of each");
  EXPECT_EQ(complaint({0, 1, 2}, {}),
            "decide: epoch 0: layer w has 3 level_errors and 0 level_bytes, expected 3 of each");
  EXPECT_EQ(complaint({0, 1, -2}, {9, 5, 1}), "decide: epoch 0: layer w has a level_errors below 0");
  EXPECT_EQ(complaint({0, 1, 2}, {9, std::nan(""), 1}),
            "decide: epoch 0: layer w has a level_bytes that is no size");
}

}  // namespace
}  // namespace accordion
