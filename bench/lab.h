// Hosts on this machine with links of a given rate, as tools/netlab makes them (docs/testbed.md).
#pragma once

#include <string>
#include <vector>

#include "accordion/launch/child.h"

namespace accordion::bench {

class Lab {
 public:
  // Throws an Error with netlab's own words when it cannot make them.
  Lab(const std::string& netlab, int hosts, const std::string& rate);
  ~Lab();  // The hosts go, and what runs there.
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  // Makes a spec run on a host.
  void move_to_host(std::size_t host, WorkerSpec& spec) const;
  const std::string& address(std::size_t host) const { return addresses_.at(host); }

 private:
  Child netlab_;
  std::string interface_;
  std::vector<std::string> namespaces_, addresses_;
};

}  // namespace accordion::bench
