#include "accordion/comm/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/comm/sockets.h"

namespace accordion {
namespace {

using Clock = std::chrono::steady_clock;

// What is left of a header and of the bytes behind it, when the first `moved` of both together have been moved.
std::array<iovec, 2> rest_of(std::span<std::byte> header, std::span<std::byte> data, std::size_t moved) {
  const std::size_t of_header = std::min(moved, header.size()), of_data = moved - of_header;
  return {iovec{header.data() + of_header, header.size() - of_header},
          iovec{data.data() + of_data, data.size() - of_data}};
}

std::string failure_of(int error) {
  return error == EPIPE || error == ECONNRESET ? "connection closed by peer" : std::strerror(error);
}

}  // namespace

struct TcpCommunicator::Header {
  std::uint64_t call = 0, bytes = 0;
};

// One end of a message.
class TcpCommunicator::End : public Transfer {
 public:
  End(TcpCommunicator& group, int peer, std::size_t bytes, bool sends)
      : group(group), peer(peer), bytes(bytes), sends(sends) {}

  bool done() const { return moved == sizeof(Header) + bytes; }
  void wait() final { group.await(*this); }
  [[noreturn]] void fail(const std::string& why) const {
    throw Error("rank " + std::to_string(group.rank_) + (sends ? ": sending " : ": receiving ") +
                std::to_string(bytes) + " bytes " + (sends ? "to" : "from") + " rank " +
                std::to_string(peer) + ": " + why);
  }

  TcpCommunicator& group;
  const int peer;
  const std::size_t bytes;
  const bool sends;
  std::size_t moved = 0;  // With the header.

 protected:
  // Whoever gives up in the middle of a message leaves a connection behind that no other can use.
  template <class Queue>
  void leave(Queue& queue) {
    const auto own = std::find(queue.begin(), queue.end(), this);
    if (own == queue.end()) return;
    queue.erase(own);
    group.peers_[static_cast<std::size_t>(peer)].failure = "an earlier message was given up";
  }
};

class TcpCommunicator::Sending final : public End {
 public:
  Sending(TcpCommunicator& group, int to, std::span<const std::byte> data, std::uint64_t call)
      : End(group, to, data.size(), true), header{call, data.size()}, data(data.data()) {}
  ~Sending() override { leave(group.peers_[static_cast<std::size_t>(peer)].sending); }

  Header header;
  const std::byte* const data;
};

class TcpCommunicator::Receiving final : public End {
 public:
  Receiving(TcpCommunicator& group, int from, std::span<std::byte> data, std::uint64_t call)
      : End(group, from, data.size(), false), call(call), data(data.data()) {}
  ~Receiving() override { leave(group.peers_[static_cast<std::size_t>(peer)].receiving); }

  // Empty if the header, once it is there, is that of the message that is waited for.
  std::string refusal() const {
    if (moved < sizeof header) return "";
    if (header.call != call)
      return "it is at its call " + std::to_string(header.call) + " and this rank at " + std::to_string(call);
    return header.bytes == bytes ? "" : "it sent " + std::to_string(header.bytes);
  }

  Header header;
  const std::uint64_t call;
  std::byte* const data;
};

TcpCommunicator::TcpCommunicator(int rank, std::vector<UniqueFd> sockets, std::chrono::milliseconds timeout)
    : rank_(rank), process_(::getpid()), timeout_(timeout), peers_(sockets.size()) {
  for (std::size_t r = 0; r < sockets.size(); ++r) {
    peers_[r].socket = std::move(sockets[r]);
    const int on = 1;
    if (peers_[r].socket.is_open())
      ::setsockopt(peers_[r].socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
}

// A copy that a forked process has ends nothing of its parent's.
TcpCommunicator::~TcpCommunicator() {
  if (::getpid() == process_) TcpCommunicator::hang_up();
}

// Ends the streams, whoever else holds the sockets: a process that this one forked may.
void TcpCommunicator::hang_up() {
  for (Peer& peer : peers_)
    if (peer.socket.is_open()) ::shutdown(peer.socket.get(), SHUT_RDWR);
}

std::unique_ptr<Transfer> TcpCommunicator::start_send(int to, std::span<const std::byte> bytes) {
  auto sending = std::make_unique<Sending>(*this, to, bytes, call());
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  peer.sending.push_back(sending.get());
  if (peer.sending.size() == 1) send_what_can(peer);
  return sending;
}

std::unique_ptr<Transfer> TcpCommunicator::start_receive(int from, std::span<std::byte> bytes) {
  auto receiving = std::make_unique<Receiving>(*this, from, bytes, call());
  peers_[static_cast<std::size_t>(from)].receiving.push_back(receiving.get());
  return receiving;
}

void TcpCommunicator::await(const End& end) {
  Peer& peer = peers_[static_cast<std::size_t>(end.peer)];
  if (!end.done() && !end.sends) receive_what_can(peer);  // Often it is there.
  auto last = Clock::now();
  while (!end.done()) {
    // Whoever else has failed keeps this message from being of use, and is more likely to blame.
    for (const Peer& each : peers_)
      if (!each.failure.empty() && !(each.sending.empty() && each.receiving.empty()))
        (each.receiving.empty() ? static_cast<const End&>(*each.sending.front()) : *each.receiving.front())
            .fail(each.failure);
    const std::uint64_t before = moved_;
    move_what_can();
    const auto now = Clock::now();
    if (moved_ != before)
      last = now;
    else if (now - last >= timeout_)
      end.fail("timed out waiting " + std::to_string(timeout_.count()) + "ms");
  }
}

// Sleeps until something can be moved, and moves it.
void TcpCommunicator::move_what_can() {
  std::vector<pollfd> waits;
  waits.reserve(peers_.size());
  std::vector<Peer*> whose;
  whose.reserve(peers_.size());
  for (Peer& peer : peers_) {
    const int events = (peer.sending.empty() ? 0 : POLLOUT) | (peer.receiving.empty() ? 0 : POLLIN);
    if (events == 0) continue;
    waits.push_back({.fd = peer.socket.get(), .events = static_cast<short>(events), .revents = 0});
    whose.push_back(&peer);
  }
  // In slices, so that a clock that is no longer than that is kept.
  if (!poll_until(waits, Clock::now() + std::min(timeout_, std::chrono::milliseconds(1000)))) return;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i].revents == 0) continue;
    if (!whose[i]->receiving.empty()) receive_what_can(*whose[i]);
    if (!whose[i]->sending.empty() && (waits[i].revents & (POLLOUT | POLLERR | POLLHUP)) != 0)
      send_what_can(*whose[i]);
  }
}

void TcpCommunicator::send_what_can(Peer& peer) {
  while (!peer.sending.empty() && peer.failure.empty()) {
    Sending& next = *peer.sending.front();
    // What is only sent is only read.
    auto parts = rest_of(std::as_writable_bytes(std::span(&next.header, 1)),
                         {const_cast<std::byte*>(next.data), next.bytes}, next.moved);
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t moved = ::sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved < 0) {
      if (!may_be_tried_again()) peer.failure = failure_of(errno);
      return;
    }
    next.moved += static_cast<std::size_t>(moved);
    moved_ += static_cast<std::uint64_t>(moved);
    if (!next.done()) return;
    peer.sending.pop_front();
  }
}

void TcpCommunicator::receive_what_can(Peer& peer) {
  while (!peer.receiving.empty() && peer.failure.empty()) {
    Receiving& next = *peer.receiving.front();
    auto parts =
        rest_of(std::as_writable_bytes(std::span(&next.header, 1)), {next.data, next.bytes}, next.moved);
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t moved = ::recvmsg(peer.socket.get(), &message, MSG_DONTWAIT);
    if (moved < 0) {
      if (!may_be_tried_again()) peer.failure = failure_of(errno);
      return;
    }
    next.moved += static_cast<std::size_t>(moved);
    moved_ += static_cast<std::uint64_t>(moved);
    peer.failure = moved == 0 ? "connection closed by peer" : next.refusal();
    if (!peer.failure.empty())
      next.moved = 0;  // Another message than this: however much came, it is not done.
    if (!next.done()) return;
    peer.receiving.pop_front();
  }
}

}  // namespace accordion
