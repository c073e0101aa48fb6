#include "accordion/launch/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "accordion/base/error.h"
#include "accordion/base/unique_fd.h"

namespace accordion {

int free_port() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd.get() < 0 || ::bind(fd.get(), generic, size) != 0 || ::getsockname(fd.get(), generic, &size) != 0)
    throw Error("cannot find a free port on 127.0.0.1: " + std::generic_category().message(errno));
  return ntohs(address.sin_port);
}

}  // namespace accordion
