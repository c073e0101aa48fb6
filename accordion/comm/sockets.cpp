#include "accordion/comm/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sstream>
#include <thread>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

UniqueFd stream_socket(int family) {
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, int port, int flags = 0) {
  addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found))
    throw Error("cannot find the host \"" + host + "\": " + ::gai_strerror(code));
  return {found, &::freeaddrinfo};
}

std::string numeric(const sockaddr& address, socklen_t length) {
  char text[NI_MAXHOST] = "";
  ::getnameinfo(&address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

// Returns 0 or an errno, after at most `patience`.
int connect_within(const UniqueFd& socket, const addrinfo& address, milliseconds patience) {
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd wait{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (!poll_until(std::span(&wait, 1), Clock::now() + std::max(milliseconds(1), patience))) return ETIMEDOUT;
  int result = 0;
  socklen_t length = sizeof result;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &result, &length);
  return result;
}

}  // namespace

std::string why_not_listen(int port) {
  // Both families at once, as the store will do it; IPv4 alone where there is no IPv6.
  for (int family : {AF_INET6, AF_INET}) {
    const UniqueFd socket = stream_socket(family);
    if (!socket.is_open()) continue;
    const int on = 1, off = 0;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_storage any{};
    socklen_t length = sizeof(sockaddr_in);
    if (family == AF_INET6) {
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      auto& address = reinterpret_cast<sockaddr_in6&>(any);
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(static_cast<std::uint16_t>(port));
      length = sizeof address;
    } else {
      auto& address = reinterpret_cast<sockaddr_in&>(any);
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(port));
    }
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), length) == 0) return "";
    if (errno == EADDRINUSE) return "taken";
    if (errno == EACCES) return "not permitted";
  }
  return "";  // Whatever else is wrong, the store will say.
}

void require_host(const std::string& host) {
  resolve(host, 1);
}

bool poll_until(std::span<pollfd> waits, Deadline deadline) {
  for (;;) {
    // Rounded up, so that nobody comes back before the time; and in slices, of which any fits into an int.
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left <= milliseconds(0)) return false;
    const auto slice = std::min(left, milliseconds(1 << 20));
    const int ready = ::poll(waits.data(), waits.size(), static_cast<int>(slice.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR)
      throw Error(std::string("cannot wait for sockets: ") + std::strerror(errno));
  }
}

bool may_be_tried_again() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

UniqueFd connect_to(const std::string& host, int port, Deadline deadline, WhereRefused refused) {
  const auto start = Clock::now();
  const Addresses addresses = resolve(host, port);
  int left = 0;
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) ++left;
  for (const int count = left;; left = count) {
    int reason = 0;
    for (const addrinfo* address = addresses.get(); address; address = address->ai_next, --left) {
      UniqueFd socket = stream_socket(address->ai_family);
      // A share each, so that one address that swallows packets does not hide the next.
      const auto patience = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()) / left;
      const int result = !socket.is_open() ? errno : connect_within(socket, *address, patience);
      if (result == 0) return socket;
      // That this machine has no IPv6 is not why the other end could not be reached.
      if (reason == 0 || (result != EADDRNOTAVAIL && result != EAFNOSUPPORT)) reason = result;
    }
    constexpr milliseconds kPause{20};
    if (Clock::now() + kPause >= deadline || (reason == ECONNREFUSED && refused == WhereRefused::kGiveUp)) {
      std::ostringstream text;
      text << "waited " << std::round(std::chrono::duration<double>(Clock::now() - start).count() * 10) / 10
           << " s for " << host << ":" << port << ": " << std::strerror(reason);
      throw Error(text.str());
    }
    std::this_thread::sleep_for(kPause);
  }
}

UniqueFd listen_at(const std::string& address, int port) {
  int reason = EADDRNOTAVAIL;
  const Addresses addresses = resolve(address, port, AI_PASSIVE);
  for (const addrinfo* each = addresses.get(); each; each = each->ai_next) {
    UniqueFd socket = stream_socket(each->ai_family);
    const int on = 1;
    if (socket.is_open()) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket.is_open() && ::bind(socket.get(), each->ai_addr, each->ai_addrlen) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0)
      return socket;
    reason = errno;
  }
  throw Error("cannot listen on " + address + ":" + std::to_string(port) + ": " + std::strerror(reason));
}

int port_of(const UniqueFd& socket) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0)
    throw Error(std::string("a socket has no port: ") + std::strerror(errno));
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

std::string local_address_towards(const std::string& host, int port, Deadline deadline) {
  const UniqueFd socket = connect_to(host, port, deadline);
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length);
  return numeric(reinterpret_cast<const sockaddr&>(own), length);
}

std::string first_line_from(const std::string& host, int port, Deadline deadline) {
  const UniqueFd socket = connect_to(host, port, deadline);
  std::string text;
  while (text.find('\n') == std::string::npos && text.size() < 65536) {
    pollfd wait{.fd = socket.get(), .events = POLLIN, .revents = 0};
    char bytes[4096];
    if (!poll_until(std::span(&wait, 1), deadline)) break;
    const ssize_t got = ::recv(socket.get(), bytes, sizeof bytes, 0);
    if (got < 0 && may_be_tried_again()) continue;
    if (got <= 0) break;
    text.append(bytes, static_cast<std::size_t>(got));
  }
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> addresses_of(const std::string& host) {
  std::vector<std::string> found;
  const Addresses addresses = resolve(host, 1);
  for (const addrinfo* each = addresses.get(); each; each = each->ai_next)
    found.push_back(numeric(*each->ai_addr, each->ai_addrlen));
  return found;
}

std::vector<std::string> interface_addresses(const std::string& name) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, &::freeifaddrs);
  std::vector<std::string> found;
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* each = first; each; each = each->ifa_next)
      if (each->ifa_addr && each->ifa_addr->sa_family == family && name == each->ifa_name)
        found.push_back(
            numeric(*each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
  return found;
}

bool has_address(const std::string& numeric_address) {
  try {
    return listen_at(numeric_address, 0).is_open();
  } catch (const Error&) {
    return false;
  }
}

bool is_loopback(const std::string& numeric_address) {
  return numeric_address == "::1" || numeric_address.starts_with("127.") ||
         numeric_address.starts_with("::ffff:127.");
}

bool is_link_local(const std::string& numeric_address) {
  return numeric_address.starts_with("fe80:");
}

std::vector<std::string> interface_names() {
  std::vector<std::string> names;
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> list(::if_nameindex(),
                                                                                 &::if_freenameindex);
  for (const struct if_nameindex* entry = list.get(); entry && entry->if_index; ++entry)
    names.emplace_back(entry->if_name);
  return names;
}

}  // namespace accordion
