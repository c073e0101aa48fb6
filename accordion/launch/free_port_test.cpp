#include "accordion/launch/free_port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "accordion/base/unique_fd.h"

namespace accordion {
namespace {

TEST(FreePort, CanBeListenedOn) {
  const int port = free_port();
  ASSERT_GT(port, 0);
  ASSERT_LE(port, 65535);
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd.get(), 1), 0);
}

}  // namespace
}  // namespace accordion
