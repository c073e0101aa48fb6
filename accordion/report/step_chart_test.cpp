#include "accordion/report/step_chart.h"

#include <gtest/gtest.h>

namespace accordion {
namespace {

TEST(StepChart, ShowsMeasuredBesidePredicted) {
  perf::Timeline measured{.buckets = {{.ready = 0.05,
                                       .first_encode = {0.05, 0.06},
                                       .wire = {{0.06, 0.09}},
                                       .decode = {{0.09, 0.1}},
                                       .end = 0.1}},
                          .backward = 0.05,
                          .seconds = 0.1};
  perf::Timeline predicted = measured;
  predicted.seconds = 0.09;
  const std::string text = step_chart(measured, predicted, 20);
  EXPECT_NE(text.find("100 ms measured, 90.0 ms predicted (-10.0 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("|bbbbbbbbbb\n"), std::string::npos) << text;
  EXPECT_NE(text.find("|          eewwwwwwdd\n"), std::string::npos) << text;
}

TEST(StepChart, AnythingShows) {
  const perf::Timeline nothing;
  EXPECT_NE(step_chart(nothing, nothing).find("0.00 ms measured"), std::string::npos);
  perf::Timeline tiny{
      .buckets = {{.ready = 1, .first_encode = {0.5, 0.5 + 1e-9}, .wire = {{0.5, 0.5}}, .end = 1}},
      .backward = 1,
      .seconds = 1};
  EXPECT_NE(step_chart(tiny, nothing, 10).find("|     e"), std::string::npos)
      << step_chart(tiny, nothing, 10);
}

// A bucket that is over within a column is mostly wire; and it may be over at the very end.
TEST(StepChart, ShowsTheLongestOfWhatSharesAColumn) {
  perf::Timeline quick{.buckets = {{.ready = 0.95,
                                    .first_encode = {0.951, 0.96},
                                    .wire = {{0.96, 0.985}},
                                    .decode = {{0.985, 0.99}},
                                    .end = 0.99},
                                   {.ready = 0.999, .wire = {{0.9995, 1}}, .end = 1}},
                       .backward = 0.95,
                       .seconds = 1};
  const std::string text = step_chart(quick, quick, 10);
  EXPECT_NE(text.find("bucket 0   measured  |         w\n"), std::string::npos) << text;
  EXPECT_NE(text.find("bucket 1   measured  |         w\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace accordion
