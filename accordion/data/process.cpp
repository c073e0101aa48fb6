#include "accordion/data/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "accordion/base/error.h"

namespace accordion {
namespace {

constexpr std::size_t kKeptOutput = 1500;

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// The last part of what comes out of `pipe`, until its writers are gone.
std::string drain(int pipe) {
  std::string output;
  std::array<char, 4096> chunk;
  while (true) {
    const ssize_t got = read(pipe, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return output;
    output.append(chunk.data(), static_cast<std::size_t>(got));
    if (output.size() > kKeptOutput) output.erase(0, output.size() - kKeptOutput);
  }
}

}  // namespace

void run_program(const std::vector<std::string>& argv, const std::filesystem::path& folder) {
  const std::string& program = argv.front();
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) throw Error(program + ": cannot make a pipe: " + std::strerror(errno));
  SpawnActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), pipe[1], STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(actions.get(), folder.c_str());
  pid_t child;
  const int error = posix_spawnp(&child, program.c_str(), actions.get(), nullptr, arguments.data(), environ);
  close(pipe[1]);
  if (error != 0) {
    close(pipe[0]);
    if (error == ENOENT)
      throw Error(program + ": not found in PATH; install it (on Debian: apt-get install " + program + ")");
    throw Error(program + ": cannot be started: " + std::strerror(error));
  }
  const std::string output = drain(pipe[0]);
  close(pipe[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw Error(program + ": cannot wait for it: " + std::strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;

  std::string command;
  for (const std::string& argument : argv) command += (command.empty() ? "" : " ") + argument;
  const std::string end = WIFSIGNALED(status) ? "was ended by signal " + std::to_string(WTERMSIG(status))
                                              : "failed with status " + std::to_string(WEXITSTATUS(status));
  throw Error(command + " " + end + (output.empty() ? "" : ":\n" + output));
}

}  // namespace accordion
