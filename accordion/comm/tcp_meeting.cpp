#include "accordion/comm/tcp_meeting.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <sstream>
#include <string_view>
#include <utility>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kMagic = "accordion-rank-1";
constexpr milliseconds kHello{2000};  // A rank says hello as soon as it is connected.

struct Hello {
  std::array<char, kMagic.size()> magic = {};
  std::array<std::uint64_t, 2> secret = {};
  std::uint64_t rank = 0;
};

std::array<std::uint64_t, 2> draw_secret() {
  std::random_device device;
  const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
  return {word(), word()};
}

int patience(Deadline deadline, milliseconds most = milliseconds::max()) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp(left, milliseconds(0), std::min(most, milliseconds(1 << 30))).count());
}

// Whether all of it was moved before the deadline.
bool move_whole(int socket, Hello& hello, bool sends, Deadline deadline) {
  auto* bytes = reinterpret_cast<std::byte*>(&hello);
  for (std::size_t moved = 0; moved < sizeof hello;) {
    pollfd wait{.fd = socket, .events = static_cast<short>(sends ? POLLOUT : POLLIN), .revents = 0};
    if (::poll(&wait, 1, patience(deadline)) <= 0) return false;
    const ssize_t now = sends ? ::send(socket, bytes + moved, sizeof hello - moved, MSG_NOSIGNAL)
                              : ::recv(socket, bytes + moved, sizeof hello - moved, 0);
    if (now <= 0) return false;
    moved += static_cast<std::size_t>(now);
  }
  return true;
}

class Meeting {
 public:
  Meeting(int rank, int size, Deadline deadline)
      : rank_(rank), deadline_(deadline), sockets_(static_cast<std::size_t>(size)) {}

  // Those before this rank.
  void connect(const Noticeboard& board) {
    for (int r = 0; r < rank_; ++r) {
      std::string address;
      int port = 0;
      Hello hello{.rank = static_cast<std::uint64_t>(rank_)};
      std::copy(kMagic.begin(), kMagic.end(), hello.magic.begin());
      std::istringstream notice(board.find(key(r)));
      if (!(notice >> address >> port >> std::hex >> hello.secret[0] >> hello.secret[1]))
        fail(r, "\"" + notice.str() + "\" is not where it listens");
      UniqueFd socket;
      try {
        socket = connect_to(address, port, deadline_);
      } catch (const Error& error) {
        fail(r, error.what());
      }
      if (!move_whole(socket.get(), hello, true, deadline_)) fail(r, "it hung up");
      sockets_[static_cast<std::size_t>(r)] = std::move(socket);
    }
  }

  // Those after it, and nobody else.
  void accept(int listener, const std::array<std::uint64_t, 2>& secret) {
    for (auto missing = static_cast<int>(sockets_.size()) - rank_ - 1; missing > 0;) {
      pollfd wait{.fd = listener, .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, patience(deadline_)) <= 0) fail(first_missing(), "it did not connect in time");
      UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      Hello hello;
      if (!socket.is_open() ||
          !move_whole(socket.get(), hello, false, std::min(deadline_, Clock::now() + kHello)))
        continue;
      const bool known = std::string_view(hello.magic.data(), hello.magic.size()) == kMagic &&
                         hello.secret == secret && hello.rank > static_cast<std::uint64_t>(rank_) &&
                         hello.rank < sockets_.size() && !sockets_[hello.rank].is_open();
      if (!known) continue;
      sockets_[hello.rank] = std::move(socket);
      --missing;
    }
  }

  std::vector<UniqueFd> take() { return std::move(sockets_); }

  static std::string key(int rank) { return "listens/" + std::to_string(rank); }

 private:
  int first_missing() const {
    int r = rank_ + 1;
    while (sockets_[static_cast<std::size_t>(r)].is_open()) ++r;
    return r;
  }
  [[noreturn]] void fail(int peer, const std::string& why) const {
    throw Error("rank " + std::to_string(rank_) + ": connecting to rank " + std::to_string(peer) + ": " +
                why);
  }

  const int rank_;
  const Deadline deadline_;
  std::vector<UniqueFd> sockets_;
};

}  // namespace

std::vector<UniqueFd> connect_ranks(int rank, int size, const std::string& address, const Noticeboard& board,
                                    Deadline deadline) {
  Meeting meeting(rank, size, deadline);
  UniqueFd listener;
  std::array<std::uint64_t, 2> secret = {};
  if (rank < size - 1) {
    listener = listen_at(address, 0);
    secret = draw_secret();
    std::ostringstream notice;
    notice << address << ' ' << port_of(listener) << std::hex << ' ' << secret[0] << ' ' << secret[1];
    board.write(Meeting::key(rank), notice.str());
  }
  // Nobody waits for an answer to its hello, so nobody waits in a circle.
  meeting.connect(board);
  meeting.accept(listener.get(), secret);
  return meeting.take();
}

}  // namespace accordion
