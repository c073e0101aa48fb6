#include "accordion/comm/local_store.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "accordion/base/error.h"

namespace accordion {
namespace {

// Leads the answer, so that whatever else listens on the port is not taken for it.
constexpr std::string_view kGreeting = "accordion store ";

std::filesystem::path make_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "accordion-store-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw Error("cannot make the folder " + name + ": " + std::strerror(errno));
  return name;
}

}  // namespace

bool is_local(const std::string& address) {
  return address == "localhost" || is_loopback(address);
}

LocalStoreHost::LocalStoreHost(const std::string& address, int port) : folder_(make_folder()) {
  try {
    listener_ = listen_at(address, port);
    thread_ = std::thread([this] { answer(); });
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    throw;
  }
}

LocalStoreHost::~LocalStoreHost() {
  closing_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);  // Wakes the thread.
  thread_.join();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void LocalStoreHost::answer() {
  const std::string line = std::string(kGreeting) + path() + "\n";
  while (!closing_) {
    const int caller = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (caller < 0) continue;
    // Less than any socket's buffer, so it goes out at once.
    [[maybe_unused]] const ssize_t sent = ::send(caller, line.data(), line.size(), MSG_NOSIGNAL);
    ::close(caller);
  }
}

std::string find_local_store(const std::string& address, int port, Deadline deadline) {
  const std::string answer = first_line_from(address, port, deadline);
  if (!answer.starts_with(kGreeting))
    throw Error(address + ":" + std::to_string(port) + " is not rank 0 of this run: " +
                (answer.empty() ? "it does not answer" : "it says \"" + answer.substr(0, 40) + "\""));
  return answer.substr(kGreeting.size());
}

}  // namespace accordion
