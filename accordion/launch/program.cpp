#include "accordion/launch/program.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "accordion/base/error.h"
#include "accordion/launch/child.h"

namespace accordion {
namespace {

constexpr std::size_t kKeptOutput = 1500;

// Appends what there is to read, as far as it is kept. False at the stream's end.
bool take(int fd, std::string& output) {
  char chunk[4096];
  while (true) {
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    output.append(chunk, static_cast<std::size_t>(got));
    if (output.size() > kKeptOutput) output.erase(0, output.size() - kKeptOutput);
  }
}

// The last part of what it prints, until nobody can print any more.
std::string drain(const Child& child) {
  std::string output;
  pollfd streams[] = {{child.out.get(), POLLIN, 0}, {child.err.get(), POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    ::poll(streams, 2, -1);
    for (pollfd& stream : streams)
      if (stream.fd >= 0 && stream.revents != 0 && !take(stream.fd, output)) stream.fd = -1;
  }
  return output;
}

}  // namespace

void run_program(const std::vector<std::string>& argv, const std::filesystem::path& folder) {
  const Child child = start_child({.argv = argv, .environment = {}, .folder = folder});
  const std::string output = drain(child);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0)
    if (errno != EINTR) throw Error(argv.front() + ": cannot wait for it: " + std::strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;

  std::string command;
  for (const std::string& argument : argv) command += (command.empty() ? "" : " ") + argument;
  const std::string end = WIFSIGNALED(status) ? "was ended by signal " + std::to_string(WTERMSIG(status))
                                              : "failed with status " + std::to_string(WEXITSTATUS(status));
  throw Error(command + " " + end + (output.empty() ? "" : ":\n" + output));
}

}  // namespace accordion
