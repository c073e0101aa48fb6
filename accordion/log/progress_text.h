// The words and the bar of a progress display: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "accordion/log/epoch_record.h"

namespace accordion {

std::string duration_text(double seconds);    // "0:21", "12:03", "1:02:03"
std::string quantity_text(double value);      // Three digits: "8.12", "812", "12.4k", "1.24M"
std::string bytes_text(std::uint64_t bytes);  // "512 B", "10.8 MB"
std::string loss_text(double loss);           // "0.412"
std::string bar_text(double fraction, int cells, bool utf8);

// The first `columns` characters of UTF-8 text, each taken to fill one column.
std::string clipped(std::string_view text, int columns);
int columns_of(std::string_view text);

struct ProgressState {
  int epoch = 1, epochs = 1;         // Counted from 1.
  std::int64_t done = 0, total = 0;  // Items of this epoch.
  double rate = 0;                   // Items a second; 0 when not known yet.
  std::string unit = "img";
  double loss = 0;
  double seconds_left = 0;  // Of the whole run.
};

// `epoch 3/10 ━━━━━━━╸──── 61 %  12.4k img/s  loss 0.412  0:21 left`, at most `width` columns.
std::string progress_line(const ProgressState& state, int width, bool utf8);

// "accuracy 87.3 %", "perplexity 97.6", to so many digits; empty when the epoch was not tested.
std::string result_text(const EpochRecord& record, int digits);

// `epoch 3/10: loss 0.412, test accuracy 87.3 %, 12.4k img/s, 14.2 s, 10.8 MB sent`
std::string epoch_line(const EpochRecord& record, int epoch, int epochs, std::int64_t items,
                       std::string_view unit);

}  // namespace accordion
