#include "accordion/log/epoch_record.h"
#include "accordion/base/json.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace accordion {
namespace {

EpochRecord example() {
  return {
      .epoch = 3,
      .lr = 0.1,
      .global_batch = 512,
      .train_loss = 0.412,
      .test_loss = 0.5,
      .test_accuracy = 0.873,
      .test_perplexity = std::nullopt,
      .seconds = 14.2,
      .steps = 97,
      .dropped_steps = 2,
      .payload_bytes = 10'800'000,
      .wire_bytes = 21'600'000,
      .control_bytes = 96,
      .sent_bytes = 21'600'800,
      .paper_floats = std::numeric_limits<std::uint64_t>::max(),
      .input_wait_seconds = 0.25,
      .hidden_share = 0.75,
      .layers = {{.name = "conv1", .norm = 2.5, .level = 1, .codec = "topk:keep=0.01", .reason = "steady"}}};
}

EpochRecord through_text(const EpochRecord& record) {
  EpochRecord read;
  from_json(Json::parse(to_json(record).dump()), read);
  return read;
}

std::string complaint(const Json& json) {
  EpochRecord record;
  try {
    from_json(json, record);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(EpochRecord, KeysAreThePublishedOnes) {
  EXPECT_EQ(
      to_json(example()).dump(),
      R"({"epoch":3,"lr":0.1,"global_batch":512,"train_loss":0.412,"test_loss":0.5,"test_accuracy":0.873,)"
      R"("seconds":14.2,"steps":97,"dropped_steps":2,"payload_bytes":10800000,"wire_bytes":21600000,"control_bytes":96,)"
      R"("sent_bytes":21600800,)"
      R"("paper_floats":18446744073709551615,"entries":0,"saturated":0,"input_wait_seconds":0.25,"hidden_share":0.75,)"
      R"("layers":[{"name":"conv1","elements":0,"norm":2.5,)"
      R"("level":1,"codec":"topk:keep=0.01","reason":"steady"}]})");
}

TEST(EpochRecord, PerplexityInPlaceOfAccuracy) {
  EpochRecord record = example();
  record.test_accuracy.reset();
  record.test_perplexity = 112.5;
  const EpochRecord read = through_text(record);
  EXPECT_FALSE(read.test_accuracy);
  EXPECT_EQ(read.test_perplexity, 112.5);
}

TEST(EpochRecord, KeepsWhatControllersSaw) {
  EpochRecord record = example();
  record.batch_reason = "norm unchanged";
  record.schedule_lr = 0.1;
  record.hessian_eigenvalue = 12.5;
  record.layers[0].squares = 3.5;
  record.layers[0].payload_bytes = 1200;
  record.step_split = {.compute_ms = 10, .encode_ms = 1, .wire_ms = 2.5, .decode_ms = 0.5, .busy_wire_ms = 7};
  record.layers[0].level_errors = {0, 2.5};
  record.layers[0].level_bytes = {100, 10};
  record.windows = {{.window = 3, .lr = 0.25, .steps = 50, .layers = record.layers}};
  const EpochRecord read = through_text(record);
  EXPECT_EQ(to_json(read), to_json(record));
  EXPECT_EQ(read.windows[0].layers[0].level_errors, (std::vector<double>{0, 2.5}));
  EXPECT_EQ(read.hessian_eigenvalue, 12.5);
}

TEST(EpochRecord, ADivergedLossIsNullThenNan) {
  EpochRecord record = example();
  record.train_loss = std::numeric_limits<double>::infinity();
  record.layers[0].norm = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(through_text(record).train_loss));
  EXPECT_TRUE(std::isnan(through_text(record).layers[0].norm));
}

TEST(EpochRecord, ComplaintsNameTheKey) {
  Json json = to_json(example());
  json.erase("lr");
  EXPECT_EQ(complaint(json), "epoch record: \"lr\" is missing");
  json = to_json(example());
  json["steps"] = "many";
  EXPECT_EQ(complaint(json), "epoch record: \"steps\" is \"many\", expected a whole number");
  json["steps"] = std::numeric_limits<std::int64_t>::max();  // Two such epochs have no sum.
  EXPECT_EQ(complaint(json),
            "epoch record: \"steps\" is 9223372036854775807, expected a number from 0 to 1099511627776");
  json = to_json(example());
  json["wire_bytes"] = -1;
  EXPECT_EQ(complaint(json), "epoch record: \"wire_bytes\" is -1, expected a whole number of at least 0");
  json = to_json(example());
  json["layers"][0].erase("codec");
  EXPECT_EQ(complaint(json), "epoch record: \"codec\" is missing");
  EXPECT_NE(complaint(Json::array()), "none");
}

TEST(EpochRecord, OlderAndNewerRecordsAreRead) {
  Json json = to_json(example());
  json.erase("control_bytes");
  json.erase("sent_bytes");
  json.erase("input_wait_seconds");
  json.erase("hidden_share");
  json["something_new"] = 1;
  EXPECT_EQ(complaint(json), "none");
}

RC_GTEST_PROP(EpochRecord, GoesThroughText,
              (double lr, double loss, std::uint64_t bytes, std::uint32_t steps)) {
  EpochRecord record = example();
  record.lr = lr;
  record.train_loss = loss;
  record.payload_bytes = bytes;
  record.steps = steps;
  record.layers.resize(*rc::gen::inRange(0, 5),
                       {.name = "a \"b\"\n", .norm = lr, .codec = "none", .reason = ""});
  RC_ASSERT(to_json(through_text(record)) == to_json(record));
}

}  // namespace
}  // namespace accordion
