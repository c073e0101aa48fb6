// What the ranks print, on its way to our own standard output and error. Rank 0's bytes pass as they are, the
// other ranks' whole lines with "[rank 2] " before them.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "accordion/base/unique_fd.h"

namespace accordion {

// The last few lines of a stream.
class LastWords {
 public:
  void add(std::string_view bytes);
  std::string text() const;  // Lines joined by newlines; empty when there were none.

 private:
  std::deque<std::string> lines_;
  std::string open_line_;
};

// Bytes waiting to be written to one of our streams. Nothing here blocks, so that signals and deaths are seen
// even while nobody reads what we print.
class Outlet {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Outlet(int fd) : fd_(fd) {}

  void add_bytes(std::string_view bytes);                         // Rank 0's.
  void add_line(std::string_view prefix, std::string_view line);  // Another rank's, without its newline.

  int fd() const { return fd_; }
  bool waiting() const { return sent_ < queue_.size(); }
  bool full() const { return queue_.size() - sent_ > std::size_t{1} << 20; }
  bool holds_much() const { return held_.size() > std::size_t{1} << 16; }
  void write_some();  // When poll says that the stream takes more.
  void give_up();     // Drops what waits and what comes.

  // A line of another rank waits a moment for rank 0 to end its own, then breaks into it.
  std::optional<Clock::time_point> held_until() const { return held_until_; }
  void release_if_due();

 private:
  void release_held();

  int fd_;
  bool broken_ = false;    // Nobody reads any more; the ranks need not care.
  bool mid_line_ = false;  // Rank 0 has begun a line.
  std::string queue_, held_;
  std::size_t sent_ = 0;  // Bytes of the queue's front that are written.
  std::optional<Clock::time_point> held_until_;
};

// One stream of one rank.
class Inlet {
 public:
  Inlet(UniqueFd fd, int rank, Outlet& outlet, LastWords* words);

  int fd() const { return fd_.get(); }
  bool wants_reading() const {
    return fd_.is_open() && !outlet_->full() && (prefix_.empty() || !outlet_->holds_much());
  }
  void read_some();
  // The rank has ended: takes what it left in the pipe, whoever else may hold that open, and closes.
  void finish();

 private:
  bool read_once();  // False when there is nothing more for now.
  void forward(std::string_view bytes);
  void close();

  UniqueFd fd_;
  std::string prefix_;  // None for rank 0.
  std::string open_line_;
  Outlet* outlet_;
  LastWords* words_;
};

}  // namespace accordion
