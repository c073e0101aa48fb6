// Ranks as processes, with a connection of their own to each other rank.
//
// The thread that waits for a message moves all of them: there is no thread in between that would have to be woken, or that
// would stand in its way where cores are few. Nobody polls; what waits, sleeps.
//
// message := call: u64; bytes: u64; payload      -- the machine's own byte order: ranks are of one kind
//
// `call` is the number of the collective, so that ranks whose calls differ stop instead of mixing up bytes. Messages of a
// pair travel in order, as far ahead of their receiver as the system's buffers allow.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "accordion/base/unique_fd.h"
#include "accordion/comm/communicator.h"

namespace accordion {

class TcpCommunicator final : public Communicator {
 public:
  // Connected sockets by rank, which do not block; the own one is not open. A wait in which nothing moves for as long as
  // `timeout` fails.
  TcpCommunicator(int rank, std::vector<UniqueFd> sockets, std::chrono::milliseconds timeout);
  ~TcpCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::unique_ptr<Transfer> start_send(int to, std::span<const std::byte> bytes) override;
  std::unique_ptr<Transfer> start_receive(int from, std::span<std::byte> bytes) override;

 private:
  struct Header;
  class End;
  class Sending;
  class Receiving;
  struct Peer {
    UniqueFd socket;
    std::deque<Sending*> sending;      // In this order.
    std::deque<Receiving*> receiving;  // And these.
    std::string failure;               // Why nothing moves any more.
  };

  void hang_up() override;
  void await(const End& end);
  void move_what_can();
  void send_what_can(Peer& peer);
  void receive_what_can(Peer& peer);

  const int rank_;
  const pid_t process_;
  const std::chrono::milliseconds timeout_;
  std::vector<Peer> peers_;
  std::uint64_t moved_ = 0;  // Bytes, either way.
};

}  // namespace accordion
