// The few questions about the network that a rank asks before it trusts a store or Gloo with it, whose own
// answers come late or name neither host nor port.
#pragma once

#include <poll.h>

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "accordion/base/unique_fd.h"

namespace accordion {

using Deadline = std::chrono::steady_clock::time_point;

// What `port` of this machine is that nobody may listen on it, "taken" or "not permitted", or empty.
std::string why_not_listen(int port);

// Throws Error unless the name means an address.
void require_host(const std::string& host);

// Connects to host:port, trying again until `deadline`, and hangs up. Returns the numeric address of this
// machine's end. Throws Error that names the host, the time and the system's last word.
std::string local_address_towards(const std::string& host, int port, Deadline deadline);

// The same, but first hears the other end out: returns its first line, or as much of it as came before the
// deadline or the end.
std::string first_line_from(const std::string& host, int port, Deadline deadline);

// Whether to knock again where nobody listens: not where whoever should said so while listening.
enum class WhereRefused { kTryAgain, kGiveUp };

// A connection to host:port, made as above.
UniqueFd connect_to(const std::string& host, int port, Deadline deadline,
                    WhereRefused refused = WhereRefused::kTryAgain);

// Whether any of these is ready before the deadline, whatever signals come meanwhile. After it nothing is, so that whoever is always
// ready keeps nobody beyond it.
bool poll_until(std::span<pollfd> waits, Deadline deadline);

// By errno: nothing moved because nothing can at the moment.
bool may_be_tried_again();

// Listens on that address alone. Throws Error where this machine does not have it, or the port cannot be had.
UniqueFd listen_at(const std::string& address, int port);

// Where it was bound to port 0: the one that the system chose.
int port_of(const UniqueFd& socket);

// As numbers: of a name, and of a network interface of this machine.
std::vector<std::string> addresses_of(const std::string& host);
std::vector<std::string> interface_addresses(const std::string& name);

// Whether it is this machine's.
bool has_address(const std::string& numeric_address);

bool is_loopback(const std::string& numeric_address);

// One that means something on one network only, IPv6's fe80::.
bool is_link_local(const std::string& numeric_address);

std::vector<std::string> interface_names();

}  // namespace accordion
