// While it lives, SIGINT, SIGTERM and SIGHUP make a descriptor readable and do nothing else. A signal that
// the process ignores stays ignored, as under nohup. One at a time.
#pragma once

#include <signal.h>

#include <array>
#include <optional>

#include "accordion/base/unique_fd.h"

namespace accordion {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return read_.get(); }
  std::optional<int> take();  // The next signal that came.

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  UniqueFd read_, write_;
  std::array<struct sigaction, kSignals.size()> before_;
  struct sigaction child_before_;
};

}  // namespace accordion
