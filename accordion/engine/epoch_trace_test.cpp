#include "accordion/engine/epoch_trace.h"

#include <gtest/gtest.h>

#include <map>

#include "accordion/base/json.h"
#include "accordion/engine/engine_testing.h"

namespace accordion {
namespace {

TEST(EpochTrace, HasEveryBucketOfEveryRank) {
  run_loopback_groups(2, [](Group& group) {
    Engine engine(group, kTensors, {.control = {.codec = "powersgd:approx-rank=1"}});
    run_step(engine, gradients_of(group.rank(), 0));
    std::string text;
    {
      EpochTrace trace(engine, group.control());
      for (int step = 1; step < 4; ++step) run_step(engine, gradients_of(group.rank(), step));
      text = trace.finish();
    }
    run_step(engine, gradients_of(group.rank(), 4));  // Nobody watches any more.
    engine.settle();
    if (group.rank() > 0) {
      EXPECT_EQ(text, "");
      return;
    }
    const Json trace = Json::parse(text);
    std::map<std::string, int> spans;  // By rank and what they are.
    for (const Json& event : trace["traceEvents"]) {
      const std::string name = event["name"];
      if (event["ph"] == "M") continue;
      ++spans[std::to_string(event["pid"].get<int>()) + " " +
              name.substr(0, name.find(event["ph"] == "X" && name[0] == 's' ? ' ' : ':'))];
      EXPECT_TRUE(event["ts"].is_number());
      if (event["ph"] == "X") {
        EXPECT_GE(event["dur"].get<double>(), 0) << event;
      }
    }
    const int buckets = 3 * static_cast<int>(kTensors.size());
    for (const std::string rank : {"0 ", "1 "}) {
      EXPECT_EQ(spans[rank + "step"], 3);
      EXPECT_EQ(spans[rank + "ready"], buckets);
      EXPECT_EQ(spans[rank + "encode"], buckets);
      EXPECT_GE(spans[rank + "wire"], buckets);
      EXPECT_EQ(spans[rank + "wire"], spans[rank + "decode"]);
    }
  });
}

TEST(EpochTrace, PutsPartsWhereTheyWere) {
  const auto at = [](double ms) {
    return StepClock::time_point(
        std::chrono::duration_cast<StepClock::duration>(std::chrono::duration<double, std::milli>(ms)));
  };
  StepTrace step{.begin = at(100), .end = at(120)};
  step.buckets.push_back({{{0, 0, 50}},
                          at(104),
                          false,
                          {at(104),
                           at(106),
                           at(118),
                           {},
                           {{Pattern::kSum, 8, at(107), at(110)}, {Pattern::kSum, 8, at(111), at(115)}}}});
  const Json events = Json::parse("[" + trace_events({step}, at(100), 3) + "]");
  std::vector<std::string> told;
  for (const Json& event : events)
    if (event["ph"] == "X")
      told.push_back(event["name"].get<std::string>() + " " +
                     std::to_string(std::lround(event["ts"].get<double>() / 1000)) + "+" +
                     std::to_string(std::lround(event["dur"].get<double>() / 1000)));
  EXPECT_EQ(told, (std::vector<std::string>{"step 0 0+20", "encode: bucket 0 4+2", "wire: bucket 0 7+3",
                                            "decode: bucket 0 10+1", "wire: bucket 0 11+4",
                                            "decode: bucket 0 15+3"}));
  EXPECT_EQ(events.back()["pid"], 3);
}

}  // namespace
}  // namespace accordion
