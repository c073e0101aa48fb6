// How fast messages have been arriving, and so how far ahead of them to send.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace accordion {

inline constexpr double kUnknownPace = 125e6;  // Bytes a second: 1 Gbit/s.

class Pace {
 public:
  // What arrives while a process wakes up and its answer comes back: more would only fill the network's queues.
  std::size_t bytes_ahead() const {
    return std::max(kLeast, static_cast<std::size_t>(kAheadSeconds * bytes_per_second_));
  }

  double bytes_per_second() const { return bytes_per_second_; }

  void learn(std::size_t bytes, double seconds) {
    if (bytes >= kTelling && seconds > 0)
      bytes_per_second_ += 0.75 * (static_cast<double>(bytes) / seconds - bytes_per_second_);
  }

 private:
  static constexpr double kAheadSeconds = 0.006;
  static constexpr std::size_t kLeast = 65536, kTelling = 262144;

  double bytes_per_second_ = kUnknownPace;
};

// Times what arrives from the first message on: how long that one took may be its sender's affair.
class Stopwatch {
 public:
  explicit Stopwatch(Pace& pace) : pace_(pace) {}
  ~Stopwatch() { pace_.learn(bytes_, std::chrono::duration<double>(last_ - begin_).count()); }

  void add(std::size_t bytes) {
    last_ = Clock::now();
    if (begin_ == Clock::time_point())
      begin_ = last_;
    else
      bytes_ += bytes;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Pace& pace_;
  Clock::time_point begin_, last_;
  std::size_t bytes_ = 0;
};

}  // namespace accordion
