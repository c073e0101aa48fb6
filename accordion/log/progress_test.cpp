#include "accordion/log/progress.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

namespace accordion {
namespace {

TEST(ProgressText, Durations) {
  EXPECT_EQ(duration_text(0), "0:00");
  EXPECT_EQ(duration_text(21.4), "0:21");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(723), "12:03");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(360000), "100:00:00");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::quiet_NaN()), "?");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "?");
}

TEST(ProgressText, Quantities) {
  EXPECT_EQ(quantity_text(8.123), "8.12");
  EXPECT_EQ(quantity_text(9.996), "10.0");
  EXPECT_EQ(quantity_text(81.26), "81.3");
  EXPECT_EQ(quantity_text(812), "812");
  EXPECT_EQ(quantity_text(999.7), "1.00k");
  EXPECT_EQ(quantity_text(12400), "12.4k");
  EXPECT_EQ(quantity_text(1.24e6), "1.24M");
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(10'800'000), "10.8 MB");
  EXPECT_EQ(bytes_text(999'990'000), "1.0 GB");
  EXPECT_EQ(loss_text(0.4123), "0.412");
  EXPECT_EQ(loss_text(123456), "1.23e+05");
  EXPECT_EQ(loss_text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(ProgressText, Bars) {
  EXPECT_EQ(bar_text(0, 4, false), "....");
  EXPECT_EQ(bar_text(0.5, 4, false), "==..");
  EXPECT_EQ(bar_text(0.64, 4, false), "==>.");
  EXPECT_EQ(bar_text(1, 4, false), "====");
  EXPECT_EQ(bar_text(7, 4, false), "====");
  EXPECT_EQ(bar_text(0.64, 4, true), "━━╸─");
}

ProgressState example() {
  return {.epoch = 3,
          .epochs = 10,
          .done = 615,
          .total = 1000,
          .rate = 12400,
          .unit = "img",
          .loss = 0.412,
          .seconds_left = 21};
}

TEST(ProgressText, TheLine) {
  EXPECT_EQ(progress_line(example(), 66, true),
            "epoch 3/10 ━━━━━━━━╸───── 61 %  12.4k img/s  loss 0.412  0:21 left");
  EXPECT_EQ(progress_line(example(), 60, false),
            "epoch 3/10 ====>... 61 %  12.4k img/s  loss 0.412  0:21 left");
  EXPECT_EQ(progress_line(example(), 52, false), "epoch 3/10 61 %  12.4k img/s  loss 0.412  0:21 left");
  EXPECT_EQ(progress_line(example(), 12, false), "epoch 3/10 6");
  ProgressState early = example();
  early.rate = 0;
  EXPECT_EQ(progress_line(early, 40, false), "epoch 3/10 =======..... 61 %  loss 0.412");
}

TEST(ProgressText, EpochLine) {
  EpochRecord record;
  record.train_loss = 0.412;
  record.test_accuracy = 0.873;
  record.seconds = 14.2;
  record.wire_bytes = 10'800'000;
  EXPECT_EQ(epoch_line(record, 3, 10, 176'080, "img"),
            "epoch 3/10: loss 0.412, test accuracy 87.3 %, 12.4k img/s, 14.2 s, 10.8 MB sent");
  record.test_accuracy.reset();
  record.test_perplexity = 112.53;
  record.seconds = 83;
  EXPECT_EQ(epoch_line(record, 3, 10, 8300, "words"),
            "epoch 3/10: loss 0.412, test perplexity 112.5, 100 words/s, 1:23, 10.8 MB sent");
}

RC_GTEST_PROP(ProgressText, NeverWiderThanTheTerminal,
              (int done, double rate, double loss, double left, bool utf8)) {
  ProgressState state = example();
  state.done = done;
  state.rate = rate;
  state.loss = loss;
  state.seconds_left = left;
  const int width = *rc::gen::inRange(1, 150);
  const std::string line = progress_line(state, width, utf8);
  RC_ASSERT(columns_of(line) <= width);
  RC_ASSERT(line.find('\n') == std::string::npos);
}

class ProgressTest : public ::testing::Test {
 protected:
  Progress make(ProgressStyle style) {
    ProgressOptions options;
    options.style = style;
    options.epochs = 2;
    options.width = [this] { return width; };
    options.now = [this] { return now; };
    return {out, options};
  }
  std::string taken() {
    std::string text = out.str();
    out.str("");
    return text;
  }

  double now = 1000;
  int width = 80;
  std::ostringstream out;
};

TEST_F(ProgressTest, QuietIsQuiet) {
  Progress progress = make(ProgressStyle::kQuiet);
  progress.start_epoch(1, 100);
  progress.advance(100, 1);
  progress.finish_epoch({});
  progress.clear();
  EXPECT_EQ(taken(), "");
}

TEST_F(ProgressTest, LinesAreOneAnEpoch) {
  Progress progress = make(ProgressStyle::kLines);
  progress.start_epoch(1, 100);
  progress.advance(50, 1);
  now += 10;
  progress.advance(50, 1);
  EXPECT_EQ(taken(), "");
  EpochRecord record;
  record.train_loss = 0.5;
  record.seconds = 10;
  progress.finish_epoch(record);
  EXPECT_EQ(taken(), "epoch 1/2: loss 0.500, 10.0 img/s, 10.0 s, 0 B sent\n");
}

TEST_F(ProgressTest, TheBarIsRedrawnTenTimesASecondAtMost) {
  Progress progress = make(ProgressStyle::kBar);
  progress.start_epoch(1, 100'000);
  for (int step = 0; step < 1000; ++step) {  // Three seconds.
    progress.advance(100, 1);
    now += 0.003;
  }
  const std::string text = taken();
  const auto redraws = std::count(text.begin(), text.end(), '\r');
  EXPECT_GE(redraws, 25);
  EXPECT_LE(redraws, 31);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0);
}

TEST_F(ProgressTest, RateAndTimeLeftAreOfTheWholeRun) {
  Progress progress = make(ProgressStyle::kBar);
  progress.start_epoch(1, 1000);
  for (int step = 0; step < 50; ++step) {
    now += 0.1;
    progress.advance(10, 1);
  }
  // 500 of 2000 items at 100 a second.
  const std::string text = taken();
  const std::string last = text.substr(text.rfind('\r'));
  EXPECT_NE(last.find("50 %  100 img/s"), std::string::npos) << last;
  EXPECT_NE(last.find("0:15 left"), std::string::npos) << last;
}

TEST_F(ProgressTest, OneSlowBatchDoesNotUpsetTheRate) {
  Progress progress = make(ProgressStyle::kBar);
  progress.start_epoch(1, 100'000);
  for (int step = 0; step < 300; ++step) {
    now += 0.1;
    progress.advance(10, 1);
  }
  now += 1;  // One batch in a whole second.
  taken();
  progress.advance(10, 1);
  const std::string line = taken();
  EXPECT_EQ(line.find("  100 img/s"), std::string::npos) << line;
  EXPECT_NE(line.find("  91.4 img/s"), std::string::npos) << line;
}

TEST_F(ProgressTest, AnEpochsLineReplacesTheBar) {
  Progress progress = make(ProgressStyle::kBar);
  progress.start_epoch(1, 100);
  progress.advance(50, 1);
  const int bar = columns_of(taken()) - 1;
  progress.finish_epoch({});
  const std::string text = taken();
  EXPECT_EQ(text.front(), '\r');
  EXPECT_EQ(text.back(), '\n');
  EXPECT_GE(columns_of(text) - 2, bar) << "part of the bar would stay";
  progress.start_epoch(2, 100);
  progress.advance(1, 1);
  EXPECT_NE(taken().find("epoch 2/2"), std::string::npos) << "a new epoch is drawn at once";
}

TEST_F(ProgressTest, ClearTakesTheBarAwayOnce) {
  Progress progress = make(ProgressStyle::kBar);
  progress.start_epoch(1, 100);
  progress.advance(50, 1);
  const int bar = columns_of(taken()) - 1;
  progress.clear();
  EXPECT_EQ(taken(), "\r" + std::string(static_cast<std::size_t>(bar), ' ') + "\r");
  progress.clear();
  EXPECT_EQ(taken(), "");
}

TEST_F(ProgressTest, FollowsTheTerminalsWidth) {
  Progress progress = make(ProgressStyle::kBar);
  progress.start_epoch(1, 100);
  width = 20;
  progress.advance(50, 1);
  EXPECT_LE(columns_of(taken()), 20);
}

}  // namespace
}  // namespace accordion
