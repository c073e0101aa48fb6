#include "accordion/comm/tcp_meeting.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>
#include <sstream>
#include <string_view>
#include <utility>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using Secret = std::array<std::uint64_t, 2>;

constexpr std::string_view kMagic = "accordion-rank-1";

// How many callers that have not said who they are keep their place beside the ranks that are missing.
constexpr std::size_t kStrangers = 64;

struct Hello {
  std::array<char, kMagic.size()> magic = {};
  Secret secret = {};
  std::uint64_t rank = 0;
};

Secret draw_secret() {
  std::random_device device;
  const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
  return {word(), word()};
}

// Whoever has connected, as far as it has introduced itself.
class Caller {
 public:
  explicit Caller(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  bool done() const { return moved_ == sizeof hello_; }
  bool gone() const { return gone_; }
  const Hello& hello() const { return hello_; }
  UniqueFd take() { return std::move(socket_); }

  void listen() {
    while (!done()) {
      const ssize_t now =
          ::recv(fd(), reinterpret_cast<std::byte*>(&hello_) + moved_, sizeof hello_ - moved_, MSG_DONTWAIT);
      if (now <= 0) {
        gone_ = now == 0 || !may_be_tried_again();
        return;
      }
      moved_ += static_cast<std::size_t>(now);
    }
  }

 private:
  UniqueFd socket_;
  Hello hello_;
  std::size_t moved_ = 0;
  bool gone_ = false;
};

class Meeting {
 public:
  Meeting(int rank, int size, Deadline deadline)
      : rank_(rank), deadline_(deadline), sockets_(static_cast<std::size_t>(size)) {}

  // Those before this rank.
  void connect(const Noticeboard& board) {
    for (int r = 0; r < rank_; ++r) {
      std::string address;
      try {
        int port = 0;
        Hello hello{.rank = static_cast<std::uint64_t>(rank_)};
        std::copy(kMagic.begin(), kMagic.end(), hello.magic.begin());
        std::istringstream notice(board.find(key(r), deadline_));
        if (!(notice >> address >> port >> std::hex >> hello.secret[0] >> hello.secret[1]))
          throw Error("\"" + notice.str() + "\" is not where it listens");
        // It said so while it was listening: where nobody does, it has gone, or that is another machine's address.
        UniqueFd socket = connect_to(address, port, deadline_, WhereRefused::kGiveUp);
        say(socket.get(), hello);
        sockets_[static_cast<std::size_t>(r)] = std::move(socket);
      } catch (const Error& error) {
        fail(r, error.what() +
                    std::string(is_loopback(address)
                                    ? "; if it is on another machine, name the network between them with "
                                      "--interface, in Python with GLOO_SOCKET_IFNAME"
                                    : ""));
      }
    }
  }

  // Those after it, and nobody else.
  void accept(int listener, const Secret& secret) {
    std::vector<Caller> callers;
    for (std::size_t missing = sockets_.size() - 1 - static_cast<std::size_t>(rank_); missing > 0;) {
      std::vector<pollfd> waits = {{.fd = listener, .events = POLLIN, .revents = 0}};
      for (const Caller& caller : callers)
        waits.push_back({.fd = caller.fd(), .events = POLLIN, .revents = 0});
      if (!poll_until(waits, deadline_)) fail(first_missing(), "it did not connect in time");
      for (Caller& caller : callers) {
        caller.listen();
        if (caller.done() && knows(caller.hello(), secret)) {
          sockets_[caller.hello().rank] = caller.take();
          --missing;
        }
      }
      std::erase_if(callers, [](const Caller& caller) { return caller.done() || caller.gone(); });
      if (missing > 0 && waits[0].revents != 0) admit(listener, callers, missing + kStrangers);
    }
  }

  std::vector<UniqueFd> take() { return std::move(sockets_); }

  static std::string key(int rank) { return "listens/" + std::to_string(rank); }

 private:
  void say(int socket, const Hello& hello) const {
    const auto* bytes = reinterpret_cast<const std::byte*>(&hello);
    for (std::size_t moved = 0; moved < sizeof hello;) {
      const ssize_t now = ::send(socket, bytes + moved, sizeof hello - moved, MSG_NOSIGNAL);
      if (now >= 0) {
        moved += static_cast<std::size_t>(now);
        continue;
      }
      if (!may_be_tried_again()) throw Error(std::string("it hung up: ") + std::strerror(errno));
      pollfd wait{.fd = socket, .events = POLLOUT, .revents = 0};
      if (!poll_until(std::span(&wait, 1), deadline_)) throw Error("it does not take what it is told");
    }
  }

  // The one that has kept silent for longest goes when there are too many.
  void admit(int listener, std::vector<Caller>& callers, std::size_t most) const {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      if (may_be_tried_again() || errno == ECONNABORTED) return;
      fail(first_missing(), std::string("cannot take its call: ") + std::strerror(errno));
    }
    if (callers.size() >= most) callers.erase(callers.begin());
    callers.emplace_back(std::move(socket));
  }

  bool knows(const Hello& hello, const Secret& secret) const {
    return std::string_view(hello.magic.data(), hello.magic.size()) == kMagic && hello.secret == secret &&
           hello.rank > static_cast<std::uint64_t>(rank_) && hello.rank < sockets_.size() &&
           !sockets_[hello.rank].is_open();
  }

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
  Secret secret = {};
  if (rank < size - 1) {
    try {
      listener = listen_at(address, 0);
    } catch (const Error& error) {
      throw Error("rank " + std::to_string(rank) + ": " + error.what());
    }
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
