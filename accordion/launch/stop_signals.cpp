#include "accordion/launch/stop_signals.h"

#include <fcntl.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <system_error>

#include "accordion/base/error.h"

namespace accordion {
namespace {

std::atomic<int> target = -1;
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t written = ::write(target.load(), &byte, 1);
  errno = saved;
}

}  // namespace

StopSignals::StopSignals() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw Error("cannot make a pipe for signals: " + std::generic_category().message(errno));
  read_ = UniqueFd(ends[0]);
  write_ = UniqueFd(ends[1]);
  assert(target == -1);
  target = write_.get();

  struct sigaction action {};
  action.sa_handler = note;  // Without SA_RESTART: a write to a stopped terminal must give way.
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
  // Were SIGCHLD ignored, the kernel would reap children itself and lose their statuses.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &standard, &child_before_);
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  target = -1;
}

std::optional<int> StopSignals::take() {
  unsigned char byte;
  return ::read(read_.get(), &byte, 1) == 1 ? std::optional<int>(byte) : std::nullopt;
}

}  // namespace accordion
