#include "accordion/log/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace accordion {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kMeasureSeconds = 0.5;  // Shorter spans say more about one batch than about the run.
constexpr double kSmoothSeconds = 10;    // After this, an old rate counts for a third.

}  // namespace

Progress::Progress(std::ostream& out, ProgressOptions options) : out_(out), options_(std::move(options)) {
  state_.epochs = options_.epochs;
  state_.unit = options_.unit;
}

void Progress::start_epoch(int epoch, std::int64_t items) {
  state_.epoch = epoch;
  state_.total = items;
  state_.done = 0;
  measured_at_ = options_.now();  // Evaluation between epochs is not training.
  measured_done_ = 0;
}

void Progress::advance(std::int64_t items, double loss) {
  state_.done += items;
  state_.loss = loss;
  if (options_.style != ProgressStyle::kBar) return;
  const double now = options_.now();
  update_rate(now);
  if (!drawn_at_ || now - *drawn_at_ >= kRedrawSeconds) draw(now);
}

void Progress::update_rate(double now) {
  const double span = now - measured_at_;
  if (span >= kMeasureSeconds) {
    const double rate = static_cast<double>(state_.done - measured_done_) / span;
    const double weight = state_.rate > 0 ? 1 - std::exp(-span / kSmoothSeconds) : 1;
    state_.rate += weight * (rate - state_.rate);
    measured_at_ = now;
    measured_done_ = state_.done;
  }
  if (state_.rate <= 0) return;
  const auto left = static_cast<double>(std::max<std::int64_t>(0, state_.total - state_.done) +
                                        state_.total * std::max(0, state_.epochs - state_.epoch));
  state_.seconds_left = left / state_.rate;
}

void Progress::draw(double now) {
  // One column stays free: a terminal may wrap when the last one is filled.
  const std::string line = progress_line(state_, std::max(1, options_.width() - 1), options_.utf8);
  write_line(line);
  drawn_columns_ = columns_of(line);
  drawn_at_ = now;
}

// Writes over the bar, spaces where it was longer.
void Progress::write_line(const std::string& line) {
  const int spare = std::max(0, drawn_columns_ - columns_of(line));
  out_ << '\r' << line << std::string(static_cast<std::size_t>(spare), ' ') << std::flush;
  drawn_columns_ = 0;
}

void Progress::finish_epoch(const EpochRecord& record) {
  if (options_.style == ProgressStyle::kQuiet) return;
  const std::string line = epoch_line(record, state_.epoch, state_.epochs, state_.total, options_.unit);
  if (drawn_columns_ > 0)
    write_line(line);
  else
    out_ << line;
  out_ << '\n' << std::flush;
  drawn_at_.reset();
}

void Progress::clear() {
  if (drawn_columns_ == 0) return;
  write_line("");
  out_ << '\r' << std::flush;
  drawn_at_.reset();
}

std::optional<int> terminal_width(int fd) {
  winsize size{};
  if (::isatty(fd) == 0) return std::nullopt;
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace accordion
