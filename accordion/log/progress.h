// Shows how far a run is: on a terminal one line that is redrawn, else one line an epoch.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "accordion/log/progress_text.h"

namespace accordion {

enum class ProgressStyle { kBar, kLines, kQuiet };

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::kLines;
  int epochs = 1;  // Of the whole run.
  std::string unit = "img";
  bool utf8 = false;                               // Whether the terminal shows UTF-8.
  std::function<int()> width = [] { return 80; };  // Of the terminal, which may be resized.
  std::function<double()> now = [] {               // Seconds, steady.
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
};

class Progress {
 public:
  Progress(std::ostream& out, ProgressOptions options);

  void start_epoch(int epoch, std::int64_t items);  // Counted from 1; items of all ranks.
  void advance(std::int64_t items, double loss);    // After each step. Draws at most ten times a second.
  void finish_epoch(const EpochRecord& record);
  void clear();  // Takes the bar away, so that other text can be printed.

 private:
  void update_rate(double now);
  void draw(double now);
  void write_line(const std::string& line);

  std::ostream& out_;
  const ProgressOptions options_;
  ProgressState state_;
  int drawn_columns_ = 0;
  std::optional<double> drawn_at_;
  double measured_at_ = 0;
  std::int64_t measured_done_ = 0;
};

// Columns of the terminal at a descriptor; nothing when it is none.
std::optional<int> terminal_width(int fd);

}  // namespace accordion
