#include "bench/lab.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "accordion/base/error.h"

namespace accordion::bench {
namespace {

// Until `end` is in it, or the stream is over.
std::string read_until(int fd, char end) {
  std::string text;
  char bytes[4096];
  while (text.find(end) == std::string::npos) {
    pollfd stream{fd, POLLIN, 0};
    ::poll(&stream, 1, -1);
    const ssize_t got = ::read(fd, bytes, sizeof bytes);
    if (got == 0) break;
    if (got > 0) text.append(bytes, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

Lab::Lab(const std::string& netlab, int hosts, const std::string& rate)
    : netlab_(start_child({{netlab, "hold", "--hosts", std::to_string(hosts), "--rate", rate}, {}},
                          ChildInput::kPipe)) {
  const std::string answer = read_until(netlab_.out.get(), '\n');
  if (answer.find('\n') == std::string::npos) {
    const std::string words = read_until(netlab_.err.get(), '\0');
    ::waitpid(netlab_.pid, nullptr, 0);
    throw Error("bench: " + words.substr(0, words.find_last_not_of('\n') + 1));
  }
  const auto lab = nlohmann::json::parse(answer);
  interface_ = lab.at("interface");
  for (const auto& host : lab.at("hosts")) {
    namespaces_.push_back(host.at("namespace"));
    addresses_.push_back(host.at("address"));
  }
}

Lab::~Lab() {
  netlab_.in.reset();
  ::waitpid(netlab_.pid, nullptr, 0);
}

void Lab::move_to_host(std::size_t host, WorkerSpec& spec) const {
  spec.argv.insert(spec.argv.begin(), {"ip", "netns", "exec", namespaces_.at(host)});
  spec.environment["GLOO_SOCKET_IFNAME"] = interface_;
}

}  // namespace accordion::bench
