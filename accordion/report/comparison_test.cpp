#include "accordion/report/comparison.h"
#include "accordion/base/json.h"

#include <gtest/gtest.h>

#include "accordion/base/error.h"
#include "accordion/report/comparison_text.h"

namespace accordion {
namespace {

SeedResult run(std::int64_t seed, double value, std::uint64_t wire, double seconds,
               Metric metric = Metric::kAccuracy) {
  return {.seed = seed,
          .folder = "runs/" + std::to_string(seed),
          .result = RunResult{.metric = metric,
                              .value = value,
                              .seconds = seconds,
                              .payload_bytes = wire / 2,
                              .wire_bytes = wire,
                              .paper_floats = wire / 4}};
}

SeedResult failed(std::int64_t seed) {
  return {.seed = seed, .folder = "runs/" + std::to_string(seed), .result = std::nullopt};
}

std::vector<SettingResults> three_settings() {
  return {{"mild", {run(1, 0.880, 12'000'000, 40), run(2, 0.884, 12'000'000, 42)}},
          {"strong", {run(1, 0.850, 3'000'000, 20), run(2, 0.840, 3'000'000, 21)}},
          {"accordion", {run(1, 0.881, 4'000'000, 40), run(2, 0.882, 6'000'000, 42)}}};
}

TEST(Comparison, AveragesAndDividesTheFirstRowByTheOthers) {
  const Comparison comparison = compare(three_settings());
  ASSERT_EQ(comparison.rows.size(), 3);
  EXPECT_EQ(comparison.metric, Metric::kAccuracy);
  const ComparisonRow &mild = comparison.rows[0], &accordion = comparison.rows[2];
  EXPECT_EQ(mild.runs, 2);
  EXPECT_NEAR(mild.value.mean, 0.882, 1e-12);
  EXPECT_NEAR(*mild.value.student95, 12.706 * 0.002, 1e-5);  // s = 0.002 sqrt(2), n = 2.
  EXPECT_EQ(mild.wire_ratio, 1);
  EXPECT_EQ(mild.seconds_ratio, 1);
  EXPECT_EQ(accordion.wire_bytes, 5'000'000);
  EXPECT_EQ(accordion.payload_bytes, 2'500'000);
  EXPECT_NEAR(*accordion.wire_ratio, 2.4, 1e-12);
  EXPECT_NEAR(*accordion.paper_floats_ratio, 2.4, 1e-12);
  EXPECT_NEAR(*comparison.rows[1].seconds_ratio, 2, 1e-12);
}

// Rank 2 of PowerSGD on ResNet-18, seed by seed, as measured: values spread over points, differences do not.
TEST(Comparison, PairsSettingsBySeed) {
  std::vector<SettingResults> settings = {
      {"mild", {run(1, 0.4400, 100, 1), run(2, 0.4850, 100, 1), run(3, 0.5000, 100, 1)}},
      {"strong", {run(3, 0.4795, 50, 1), run(1, 0.4300, 50, 1), run(2, 0.4510, 50, 1)}},
      {"accordion", {run(1, 0.4395, 60, 1), run(2, 0.4810, 60, 1), run(3, 0.4960, 60, 1)}}};
  Comparison comparison = compare(settings);
  EXPECT_FALSE(comparison.rows[0].difference);
  EXPECT_EQ(comparison.rows[0].pairs, 0);
  const ComparisonRow &strong = comparison.rows[1], &accordion = comparison.rows[2];
  EXPECT_EQ(strong.pairs, 3);
  EXPECT_NEAR(strong.difference->mean, -0.0645 / 3, 1e-12);  // -0.0205, -0.01, -0.034
  EXPECT_NEAR(accordion.difference->mean, -0.0085 / 3, 1e-12);
  // Deviations of -0.0005, -0.004, -0.004 from their mean: squares add up to 2 x 0.00116667^2 + 0.00233333^2.
  EXPECT_NEAR(*accordion.difference->student95, 4.30265 * std::sqrt(8.16667e-6 / 2 / 3), 1e-6);
  EXPECT_LT(*accordion.difference->student95, *accordion.value.student95 / 10);

  settings[2].seeds[0] = failed(1);
  settings[1].seeds = {run(7, 0.4, 50, 1)};
  comparison = compare(settings);
  EXPECT_EQ(comparison.rows[2].pairs, 2);
  EXPECT_EQ(comparison.rows[1].pairs, 0);
  EXPECT_FALSE(comparison.rows[1].difference);
  EXPECT_NE(
      reading(comparison).find("strong: 40.00 %, 7.50 points below mild (no seed in common, so no interval)"),
      std::string::npos)
      << reading(comparison);
}

TEST(Comparison, CountsOnlyRunsThatFinished) {
  std::vector<SettingResults> settings = three_settings();
  settings[1].seeds[1] = failed(2);
  settings[2].seeds = {failed(1), failed(2)};
  const Comparison comparison = compare(settings);
  EXPECT_EQ(comparison.rows[1].runs, 1);
  EXPECT_EQ(comparison.rows[1].value.mean, 0.850);
  EXPECT_FALSE(comparison.rows[1].value.student95);
  EXPECT_EQ(comparison.rows[2].runs, 0);
  EXPECT_FALSE(comparison.rows[2].wire_ratio);
}

TEST(Comparison, SharesWhatTheFirstSendsBeyondTheLeast) {
  std::vector<SettingResults> settings = three_settings();  // 12, 3 and 5 MB.
  Comparison comparison = compare(settings);
  EXPECT_EQ(comparison.rows[0].extra_share, 1);
  EXPECT_EQ(comparison.rows[1].extra_share, 0);
  EXPECT_NEAR(*comparison.rows[2].extra_share, 2.0 / 9, 1e-12);
  settings[1].seeds = {failed(1), failed(2)};  // What did not run sends nothing, and is not the least.
  comparison = compare(settings);
  EXPECT_FALSE(comparison.rows[1].extra_share);
  EXPECT_EQ(comparison.rows[2].extra_share, 0);
  settings[2] = settings[0];
  EXPECT_FALSE(compare(settings).rows[2].extra_share) << "nobody sends less than the first";
}

TEST(Comparison, PairsTrainingLosses) {
  std::vector<SettingResults> settings = three_settings();
  EXPECT_FALSE(compare(settings).rows[0].train_loss) << "no run has one";
  const auto set = [&](std::size_t row, double first, double second) {
    settings[row].seeds[0].result->train_loss = first;
    settings[row].seeds[1].result->train_loss = second;
  };
  set(0, 0.5, 0.7);
  set(2, 0.6, 0.82);
  Comparison comparison = compare(settings);
  EXPECT_NEAR(*comparison.rows[0].train_loss, 0.6, 1e-12);
  EXPECT_FALSE(comparison.rows[0].train_loss_difference);
  EXPECT_FALSE(comparison.rows[1].train_loss_difference) << "strong's runs have none";
  EXPECT_NEAR(comparison.rows[2].train_loss_difference->mean, 0.11, 1e-12);
  EXPECT_NEAR(*comparison.rows[2].train_loss_difference->student95, 12.706 * 0.01, 1e-4);
  settings[2].seeds[1].result->train_loss.reset();  // Of one run alone it is no mean over the seeds.
  EXPECT_FALSE(compare(settings).rows[2].train_loss);
  EXPECT_FALSE(compare(settings).rows[2].train_loss_difference);
}

TEST(Comparison, RefusesAccuracyBesidePerplexity) {
  std::vector<SettingResults> settings = three_settings();
  settings[2].seeds[1] = run(2, 97, 6'000'000, 42, Metric::kPerplexity);
  EXPECT_THROW(compare(settings), UsageError);
}

TEST(MarkdownTable, LinesUp) {
  EXPECT_EQ("\n" + markdown_table(compare(three_settings())), R"(
| setting   | test accuracy, % | ± normal | ± Student | paired difference | sent per worker | million floats |        time |
| --------- | ----------------:| --------:| ---------:| -----------------:| ---------------:| --------------:| -----------:|
| mild      |            88.20 |   ± 0.28 |    ± 2.54 |                 - |    12.0 MB (1x) |         3 (1x) | 41.0 s (1x) |
| strong    |            84.50 |   ± 0.69 |    ± 6.35 |      -3.70 ± 8.89 |     3.0 MB (4x) |      0.75 (4x) | 20.5 s (2x) |
| accordion |            88.15 |   ± 0.07 |    ± 0.64 |      -0.05 ± 1.91 |   5.0 MB (2.4x) |    1.25 (2.4x) | 41.0 s (1x) |
)");
}

TEST(MarkdownTable, WritesRatiosAsPublished) {
  const auto shown = [](std::uint64_t wire) {
    const std::string table =
        markdown_table(compare({{"a", {run(1, 0.9, 1000, 1)}}, {"b", {run(1, 0.9, wire, 1)}}}));
    const std::size_t open = table.find('(', table.find("| b ")) + 1;
    return table.substr(open, table.find(')', open) - open);
  };
  EXPECT_EQ(shown(1000), "1x");
  EXPECT_EQ(shown(970), "1.03x");
  EXPECT_EQ(shown(357), "2.8x");
  EXPECT_EQ(shown(100), "10x");
  EXPECT_EQ(shown(81), "12.3x");
  EXPECT_EQ(shown(8), "125x");
  EXPECT_EQ(shown(5), "200x");
  EXPECT_EQ(shown(999), "1x");
}

TEST(MarkdownTable, ShowsWhatIsMissing) {
  std::vector<SettingResults> settings = three_settings();
  settings[0].name = "a|b";
  settings[1].seeds[1] = failed(2);
  settings[2].seeds = {failed(1), failed(2)};
  const std::string table = markdown_table(compare(settings));
  EXPECT_NE(table.find("| a\\|b "), std::string::npos) << table;
  EXPECT_NE(table.find("| strong (1 of 2 runs) |"), std::string::npos) << table;
  EXPECT_NE(table.find(" no run finished |"), std::string::npos) << table;
}

TEST(Reading, SaysByHowMuchARowMayBeWorseThanTheFirst) {
  std::vector<SettingResults> settings = three_settings();
  settings[1].seeds = {run(1, 0.850, 3'000'000, 20), run(2, 0.853, 3'000'000, 21)};
  EXPECT_EQ(
      reading(compare(settings)),
      "strong: 85.15 %, 3.05 points below mild (paired difference -3.05 ± 0.64, 2 seeds), with 0.25 of its "
      "data; accordion: 88.15 %, no worse than mild by more than 1.96 points (paired difference -0.05 ± "
      "1.91, 2 seeds), with 0.42 of its data.");
  settings[1].seeds = {run(1, 0.95, 120'000'000, 40), run(2, 0.954, 120'000'000, 40)};
  settings.pop_back();
  EXPECT_EQ(
      reading(compare(settings)),
      "strong: 95.20 %, 7.00 points above mild (paired difference +7.00 ± 0.00, 2 seeds), with 10.00 of its "
      "data.");
}

TEST(Reading, WithoutIntervals) {
  EXPECT_EQ(
      reading(compare({{"a", {run(1, 0.9, 0, 1)}}, {"b", {run(1, 0.88, 0, 1)}}, {"c", {run(1, 0.9, 0, 1)}}})),
      "b: 88.00 %, 2.00 points below a (a single pair, so no interval); "
      "c: 90.00 %, the same as a (a single pair, so no interval).");
  EXPECT_EQ(reading(compare({{"a", {run(1, 0.9, 0, 1)}}})), "");
}

TEST(Reading, OfPerplexitiesPrefersTheLower) {
  const auto ppl = [](std::int64_t seed, double value) {
    return run(seed, value, 1000, 1, Metric::kPerplexity);
  };
  EXPECT_EQ(
      reading(compare({{"mild", {ppl(1, 97), ppl(2, 97.1)}},
                       {"strong", {ppl(1, 105), ppl(2, 105.2)}},
                       {"best", {ppl(1, 90), ppl(2, 90)}},
                       {"near", {ppl(1, 97.2), ppl(2, 97.2)}}})),
      "strong: 105.10, 8.05 higher (worse) than mild (paired difference +8.05 ± 0.64, 2 seeds), with 1.00 of "
      "its data; best: 90.00, 7.05 lower (better) than mild (paired difference -7.05 ± 0.64, 2 seeds), with "
      "1.00 of its data; near: 97.20, no worse than mild by more than 0.79 (paired difference +0.15 ± 0.64, "
      "2 "
      "seeds), with 1.00 of its data.");
}

TEST(Reading, OfFailures) {
  EXPECT_EQ(reading(compare({{"a", {failed(1)}}, {"b", {failed(1)}}, {"c", {run(1, 0.9, 10, 1)}}})),
            "b: no run finished; c: 90.00 %.");
}

TEST(ComparisonJson, HasEveryKeyAndNullsForWhatIsNot) {
  std::vector<SettingResults> settings = three_settings();
  settings[1].seeds[0] = failed(1);
  settings[2].seeds = {failed(1), failed(2)};
  const Json rows = comparison_json(compare(settings));
  ASSERT_EQ(rows.size(), 3);
  Json mild = rows[0];
  EXPECT_NEAR(mild["normal95"].get<double>(), 0.00277, 1e-5);
  EXPECT_NEAR(mild["student95"].get<double>(), 0.02541, 1e-5);
  mild["normal95"] = mild["student95"] = 0;
  EXPECT_EQ(mild, Json::parse(R"({"setting": "mild", "seeds": [1, 2], "runs": 2, "metric": "test_accuracy",
            "mean": 0.882, "normal95": 0, "student95": 0, "paired_difference": null, "paired_student95": null,
            "pairs": 0, "train_loss": null, "train_loss_difference": null, "train_loss_student95": null,
            "payload_bytes": 6000000, "wire_bytes": 12000000,
            "paper_floats": 3000000, "seconds": 41.0, "extra_share": 1.0, "wire_ratio": 1.0, "paper_floats_ratio": 1.0,
            "seconds_ratio": 1.0, "values": [0.88, 0.884], "folders": ["runs/1", "runs/2"]})"));
  EXPECT_EQ(rows[1]["values"].dump(), "[null,0.84]");
  EXPECT_TRUE(rows[1]["student95"].is_null());
  EXPECT_NEAR(rows[1]["paired_difference"].get<double>(), 0.84 - 0.884, 1e-12);
  EXPECT_TRUE(rows[1]["paired_student95"].is_null());
  EXPECT_EQ(rows[1]["pairs"], 1);
  EXPECT_EQ(rows[2]["runs"], 0);
  for (const char* key : {"mean", "normal95", "wire_bytes", "seconds", "wire_ratio"})
    EXPECT_TRUE(rows[2][key].is_null()) << key;
}

TEST(ComparisonCsv, IsTheSameFlat) {
  std::vector<SettingResults> settings = {{"rank 1, \"cold\"", {run(1, 0.5, 8, 2), failed(2)}}};
  EXPECT_EQ(
      comparison_csv(compare(settings)),
      "setting,seeds,runs,metric,mean,normal95,student95,paired_difference,paired_student95,pairs,train_"
      "loss,train_loss_difference,train_loss_student95,payload_bytes,"
      "wire_bytes,paper_floats,seconds,extra_share,wire_ratio,paper_floats_ratio,seconds_ratio,values,"
      "folders\n"
      "\"rank 1, "
      "\"\"cold\"\"\",1;2,1,test_accuracy,0.5,,,,,0,,,,4,8,2,2.0,,1.0,1.0,1.0,0.5;,runs/1;runs/2\n");
}

}  // namespace
}  // namespace accordion
