#include "accordion/launch/forward.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace accordion {
namespace {

constexpr std::size_t kLastLines = 5;
constexpr std::size_t kLongestLastLine = 400;
constexpr std::size_t kLongestLine = std::size_t{1} << 16;
constexpr std::chrono::milliseconds kHold(200);

// What a terminal would show of a line, more or less: redrawn text is what follows the last carriage return.
std::string shown(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  line.remove_prefix(line.rfind('\r') + 1);
  if (line.size() <= kLongestLastLine) return std::string(line);
  std::size_t end = kLongestLastLine;
  while (end > 0 && (line[end] & 0xC0) == 0x80) --end;  // Not in the middle of a UTF-8 character.
  return std::string(line.substr(0, end)) + "...";
}

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

void LastWords::add(std::string_view bytes) {
  for (std::size_t end; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
    open_line_ += bytes.substr(0, end);
    if (std::string line = shown(open_line_); !blank(line)) lines_.push_back(std::move(line));
    if (lines_.size() > kLastLines) lines_.pop_front();
    open_line_.clear();
  }
  open_line_ += bytes;
  // A progress display is one endless line.
  if (open_line_.size() > kLongestLine) open_line_.erase(0, open_line_.size() - kLongestLine / 2);
}

std::string LastWords::text() const {
  std::string result;
  for (const std::string& line : lines_) result += (result.empty() ? "" : "\n") + line;
  if (const std::string line = shown(open_line_); !blank(line)) result += (result.empty() ? "" : "\n") + line;
  return result;
}

void Outlet::add_bytes(std::string_view bytes) {
  if (broken_ || bytes.empty()) return;
  const std::size_t last = bytes.rfind('\n');
  if (!held_.empty() && last != std::string_view::npos) {
    queue_ += bytes.substr(0, last + 1);
    mid_line_ = false;
    release_held();
    bytes.remove_prefix(last + 1);
  }
  queue_ += bytes;
  if (!bytes.empty()) mid_line_ = bytes.back() != '\n';
}

void Outlet::add_line(std::string_view prefix, std::string_view line) {
  if (broken_) return;
  std::string& to = mid_line_ ? held_ : queue_;
  if (mid_line_ && !held_until_) held_until_ = Clock::now() + kHold;
  to.append(prefix).append(line).append("\n");
}

void Outlet::release_if_due() {
  if (!held_until_ || Clock::now() < *held_until_) return;
  if (full())
    held_until_ = Clock::now() + kHold;  // Rank 0 is not being read, so it could not end its line.
  else
    release_held();
}

void Outlet::release_held() {
  if (!held_.empty() && mid_line_) queue_ += '\n';
  if (!held_.empty()) mid_line_ = false;
  queue_ += held_;
  held_.clear();
  held_until_.reset();
}

void Outlet::write_some() {
  // A pipe that poll reports as writable takes this much at once, although our stream, which others share, is
  // a blocking one.
  const ssize_t written =
      ::write(fd_, queue_.data() + sent_, std::min<std::size_t>(queue_.size() - sent_, PIPE_BUF));
  if (written >= 0) {
    sent_ += static_cast<std::size_t>(written);
    if (sent_ == queue_.size() || sent_ > std::size_t{1} << 18) queue_.erase(0, std::exchange(sent_, 0));
  } else if (errno != EINTR && errno != EAGAIN) {
    give_up();
  }
}

void Outlet::give_up() {
  broken_ = true;
  queue_.clear();
  held_.clear();
  sent_ = 0;
  held_until_.reset();
}

Inlet::Inlet(UniqueFd fd, int rank, Outlet& outlet, LastWords* words)
    : fd_(std::move(fd)),
      prefix_(rank == 0 ? "" : "[rank " + std::to_string(rank) + "] "),
      outlet_(&outlet),
      words_(words) {}

void Inlet::read_some() {
  read_once();
}

bool Inlet::read_once() {
  std::array<char, 1 << 16> bytes;
  const ssize_t got = ::read(fd_.get(), bytes.data(), bytes.size());
  if (got > 0) {
    forward({bytes.data(), static_cast<std::size_t>(got)});
    return true;
  }
  if (got < 0 && errno == EINTR) return true;
  if (got == 0 || errno != EAGAIN) close();
  return false;
}

void Inlet::finish() {
  // One pipe full is all that the dead can have left; more is a grandchild talking.
  const int capacity = ::fcntl(fd_.get(), F_GETPIPE_SZ);
  for (int rounds = capacity / (1 << 16) + 1; rounds > 0 && fd_.is_open() && read_once(); --rounds) {
  }
  if (fd_.is_open()) close();
}

void Inlet::forward(std::string_view bytes) {
  if (words_) words_->add(bytes);
  if (prefix_.empty()) return outlet_->add_bytes(bytes);
  for (std::size_t end; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
    outlet_->add_line(prefix_, open_line_.append(bytes.substr(0, end)));
    open_line_.clear();
  }
  open_line_ += bytes;
  if (open_line_.size() >= kLongestLine) {
    outlet_->add_line(prefix_, open_line_);
    open_line_.clear();
  }
}

void Inlet::close() {
  if (!open_line_.empty()) outlet_->add_line(prefix_, open_line_);
  open_line_.clear();
  fd_.reset();
}

}  // namespace accordion
