// Where ranks of several machines meet: rank 0 keeps a table of short texts that all of them read and write. torch's own store
// would listen on every interface, and for as long as the run; this one listens on one address, until all are connected.
//
// request := length: u32; operation: u8; key length: u16; key; value      -- the length is that of what follows it
// reply   := length: u32; done: u8; value
//
// get: done if the key is there, with its value. set: always. add (value: i64): with the sum, of 0 for a key that is not
// there. erase: done if the key was there. Little-endian.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "accordion/comm/sockets.h"

namespace accordion {

enum class StoreOperation : std::uint8_t { kGet = 1, kSet, kAdd, kErase };

// What the table holds, and what it says to a request, without the length in front. Throws Error for a request that is none.
class MeetingTable {
 public:
  std::string answer(std::string_view request);

 private:
  std::map<std::string, std::string, std::less<>> texts_;
  std::size_t bytes_ = 0;
};

std::string store_request(StoreOperation operation, std::string_view key, std::string_view value = {});

class MeetingStoreHost {
 public:
  // Listens on the first of the addresses that this machine has. Throws Error when there is none, or the port is taken.
  MeetingStoreHost(const std::vector<std::string>& addresses, int port);
  ~MeetingStoreHost();
  MeetingStoreHost(const MeetingStoreHost&) = delete;
  MeetingStoreHost& operator=(const MeetingStoreHost&) = delete;

  const std::string& address() const { return address_; }

 private:
  void serve();

  std::string address_;
  UniqueFd listener_;
  std::atomic<bool> closing_ = false;
  std::thread thread_;
};

// One thread at a time.
class MeetingStoreClient {
 public:
  // Tries until the deadline; waits no longer than `patience` for any answer.
  MeetingStoreClient(const std::string& address, int port, Deadline deadline,
                     std::chrono::milliseconds patience);

  std::optional<std::string> get(std::string_view key);
  void set(std::string_view key, std::string_view value);
  std::int64_t add(std::string_view key, std::int64_t value);
  bool erase(std::string_view key);

 private:
  // Nothing where it was not done. Throws Error.
  std::optional<std::string> ask(StoreOperation operation, std::string_view key, std::string_view value);
  [[noreturn]] static void fail(const std::string& what);

  UniqueFd socket_;
  std::chrono::milliseconds patience_;
};

// The addresses on which rank 0 is to listen, best first: those of the name at which the ranks meet, then the interface's, then
// all. A name that only means loopback here, as hosts files have it, says nothing about where others look for it.
std::vector<std::string> addresses_to_meet(const std::string& host, const std::string& interface);

}  // namespace accordion
