#include "accordion/comm/local_store.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "accordion/base/error.h"
#include "accordion/base/temporary_folder.h"
#include "accordion/launch/free_port.h"

namespace accordion {
namespace {

Deadline soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(5);
}

// The addresses on which this machine listens at `port`, in the kernel's hexadecimal notation.
std::string listeners(int port) {
  std::string found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      const auto colon = local.find(':');
      if (colon != std::string::npos && state == "0A" &&
          std::stoi(local.substr(colon + 1), nullptr, 16) == port)
        found += local.substr(0, colon) + " ";
    }
  }
  return found;
}

TEST(LocalStore, TellsItsPathOverLoopbackAlone) {
  const int port = free_port();
  std::optional<LocalStoreHost> host(std::in_place, "127.0.0.1", port);
  const std::filesystem::path path = find_local_store("127.0.0.1", port, soon());
  EXPECT_EQ(path, host->path());
  EXPECT_EQ(find_local_store("127.0.0.1", port, soon()), path);
  EXPECT_EQ(listeners(port), "0100007F ");
  struct stat folder {};
  ASSERT_EQ(::stat(path.parent_path().c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
  std::ofstream(path) << "content";
  host.reset();
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
  EXPECT_EQ(listeners(port), "");
}

TEST(LocalStore, LeavesNothingBehindWhereItCannotListen) {
  const TemporaryFolder folder(std::filesystem::temp_directory_path() / "accordion-test-");
  const char* const before = ::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  EXPECT_THROW(LocalStoreHost("10.255.255.1", free_port()), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  before ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
}

TEST(LocalStore, KnowsWhichAddressesAreThisMachine) {
  for (const char* address : {"localhost", "127.0.0.1", "127.1.2.3", "::1"})
    EXPECT_TRUE(is_local(address)) << address;
  for (const char* address : {"10.0.0.1", "localhost.example", "node7", "::", "0.0.0.0"})
    EXPECT_FALSE(is_local(address)) << address;
}

TEST(LocalStore, SaysWhenSomethingElseListens) {
  const int port = free_port(), listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 5), 0);
  const auto complaint = [&] {
    try {
      find_local_store("127.0.0.1", port, std::chrono::steady_clock::now() + std::chrono::milliseconds(300));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string start = "127.0.0.1:" + std::to_string(port) + " is not rank 0 of this run: it ";
  EXPECT_EQ(complaint(), start + "does not answer");
  std::thread other([&] {
    for (int call = 0; call < 2; ++call) {
      const int caller = ::accept(listener, nullptr, nullptr);
      if (call > 0) {
        EXPECT_GT(::send(caller, "HTTP/1.1 400\n", 13, MSG_NOSIGNAL), 0);
      }
      if (call > 0) ::close(caller);
    }
  });
  EXPECT_EQ(complaint(), start + "says \"HTTP/1.1 400\"");
  other.join();
  ::close(listener);
  EXPECT_THROW(LocalStoreHost("10.255.255.1", port), Error);
}

}  // namespace
}  // namespace accordion
