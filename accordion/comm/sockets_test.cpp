#include "accordion/comm/sockets.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Listens on a loopback port of the system's choice.
class Listener {
 public:
  Listener() : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(descriptor_, 5), 0);
    ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
    port = ntohs(address.sin_port);
  }
  ~Listener() { ::close(descriptor_); }

  int port = 0;

 private:
  int descriptor_;
};

int free_port() {
  return Listener().port;
}

std::string failure(const std::string& host, int port, milliseconds patience) {
  try {
    return "connected from " + local_address_towards(host, port, steady_clock::now() + patience);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Sockets, APortIsTakenOrFree) {
  const Listener listener;
  EXPECT_EQ(why_not_listen(listener.port), "taken");
  EXPECT_EQ(why_not_listen(free_port()), "");
}

TEST(Sockets, TheWayToLoopbackIsLoopback) {
  const Listener listener;
  EXPECT_EQ(local_address_towards("127.0.0.1", listener.port, steady_clock::now() + milliseconds(1000)),
            "127.0.0.1");
}

TEST(Sockets, GivesUpInTime) {
  const int port = free_port();
  const auto start = steady_clock::now();
  EXPECT_EQ(failure("127.0.0.1", port, milliseconds(300)),
            "waited 0.3 s for 127.0.0.1:" + std::to_string(port) + ": Connection refused");
  EXPECT_LT(steady_clock::now() - start, milliseconds(1000));
}

TEST(Sockets, NamesAHostThatDoesNotExist) {
  EXPECT_TRUE(failure("nowhere.invalid", 1, milliseconds(300))
                  .starts_with("cannot find the host \"nowhere.invalid\": "));
}

// What could be written to at any time is ready until the deadline, and not a moment later.
TEST(Sockets, NothingIsReadyAfterTheDeadline) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  pollfd wait{.fd = ends[0], .events = POLLOUT, .revents = 0};
  EXPECT_TRUE(poll_until(std::span(&wait, 1), steady_clock::now() + milliseconds(1000)));
  EXPECT_FALSE(poll_until(std::span(&wait, 1), steady_clock::now() - milliseconds(1)));
  wait.events = POLLIN;
  const auto deadline = steady_clock::now() + milliseconds(30);
  EXPECT_FALSE(poll_until(std::span(&wait, 1), deadline));
  EXPECT_GE(steady_clock::now(), deadline);
  for (const int end : ends) ::close(end);
}

TEST(Sockets, KnowsLoopbackAddresses) {
  for (const char* address : {"127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback(address));
  for (const char* address : {"10.127.0.1", "192.168.0.1", "fe80::1", "::ffff:10.0.0.1"})
    EXPECT_FALSE(is_loopback(address));
}

TEST(Sockets, ListsInterfaces) {
  const auto names = interface_names();
  EXPECT_NE(std::find(names.begin(), names.end(), "lo"), names.end());
}

}  // namespace
}  // namespace accordion
