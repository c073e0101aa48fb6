#include "accordion/launch/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cassert>
#include <cerrno>
#include <system_error>

#include "accordion/base/error.h"

namespace accordion {
namespace {

[[noreturn]] void fail(const WorkerSpec& spec, int error) {
  std::string why = std::generic_category().message(error);
  const bool in_place = spec.folder.empty() || std::filesystem::is_directory(spec.folder);
  if (error == ENOENT && in_place && spec.argv[0].find('/') == std::string::npos)
    why += " in PATH; is it installed?";
  throw Error("cannot start \"" + spec.argv[0] + "\"" +
              (spec.folder.empty() ? "" : " in " + spec.folder.string()) + ": " + why);
}

struct Pipe {
  UniqueFd read, write;
};

// When we were started without standard streams, a new descriptor may be 0, 1 or 2: move it out of the way of
// the child's own.
UniqueFd above_standard(int fd) {
  UniqueFd owned(fd);
  if (fd < 0 || fd > STDERR_FILENO) return owned;
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

Pipe make_pipe(const WorkerSpec& spec) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(spec, errno);
  return {above_standard(ends[0]), above_standard(ends[1])};
}

// The parent's variables, with the given ones in place of those of the same name.
std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Everything the new process does is prepared beforehand: between fork and exec it may not allocate.
struct Prepared {
  std::vector<std::string> variables;
  std::vector<char*> argv, environment;
  Pipe in, out, err, trouble;
  const char* folder;
  pid_t parent = ::getpid();
  sigset_t mask;
};

[[noreturn]] void become(const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(1);  // The parent died before the line above.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &prepared.mask, nullptr);
  ::dup2(prepared.in.read.get(), STDIN_FILENO);
  ::dup2(prepared.out.write.get(), STDOUT_FILENO);
  ::dup2(prepared.err.write.get(), STDERR_FILENO);
  if (*prepared.folder == '\0' || ::chdir(prepared.folder) == 0)
    ::execvpe(prepared.argv[0], prepared.argv.data(), prepared.environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(prepared.trouble.write.get(), &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Child start_child(const WorkerSpec& spec, ChildInput input) {
  assert(!spec.argv.empty());
  Prepared prepared;
  prepared.variables = merged_environment(spec.environment);
  prepared.argv = pointers(spec.argv);
  prepared.folder = spec.folder.c_str();
  prepared.environment = pointers(prepared.variables);
  if (input == ChildInput::kPipe) {
    prepared.in = make_pipe(spec);
  } else {
    prepared.in.read = above_standard(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!prepared.in.read.is_open()) fail(spec, errno);
  }
  prepared.out = make_pipe(spec);
  prepared.err = make_pipe(spec);
  prepared.trouble = make_pipe(spec);

  // No handler of ours may run in the child.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &prepared.mask);
  Child child;
  child.pid = ::fork();
  if (child.pid == 0) become(prepared);
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &prepared.mask, nullptr);
  if (child.pid < 0) fail(spec, fork_error);
  ::setpgid(child.pid, child.pid);  // Both sides do it, so that it is done whoever comes first.

  // exec closes the child's end; what comes before that is why exec failed.
  prepared.trouble.write.reset();
  int error = 0;
  ssize_t got;
  do got = ::read(prepared.trouble.read.get(), &error, sizeof error);
  while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    fail(spec, error);
  }

  child.pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  child.in = std::move(prepared.in.write);
  child.out = std::move(prepared.out.read);
  child.err = std::move(prepared.err.read);
  for (const UniqueFd* fd : {&child.out, &child.err}) ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  return child;
}

}  // namespace accordion
