// Where ranks meet that are all on this machine. torch's own store would listen on every interface; here nothing
// but the path of a file goes over loopback, and only this user can open it.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "accordion/comm/sockets.h"

namespace accordion {

// Whether an address, as it is written, means this machine and no other.
bool is_local(const std::string& address);

// Rank 0's side: a folder that goes when this does, and whose file's path is told to all who connect.
class LocalStoreHost {
 public:
  // Throws Error when the port cannot be had.
  LocalStoreHost(const std::string& address, int port);
  ~LocalStoreHost();
  LocalStoreHost(const LocalStoreHost&) = delete;
  LocalStoreHost& operator=(const LocalStoreHost&) = delete;

  std::string path() const { return folder_ / "store"; }

 private:
  void answer();

  std::filesystem::path folder_;
  UniqueFd listener_;
  std::atomic<bool> closing_ = false;
  std::thread thread_;
};

// The others' side: that path. Throws Error when nobody answers before the deadline, or not rank 0.
std::string find_local_store(const std::string& address, int port, Deadline deadline);

}  // namespace accordion
