#include "bench/crew.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <sstream>

#include "accordion/base/error.h"
#include "accordion/launch/program.h"

namespace accordion::bench {
namespace {

// Appends what can be read now; false at the end of the stream.
bool drain(int fd, std::string& text) {
  char bytes[4096];
  while (true) {
    const ssize_t got = ::read(fd, bytes, sizeof bytes);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    text.append(bytes, static_cast<std::size_t>(got));
  }
}

}  // namespace

bool runs(const std::vector<std::string>& argv) try {
  run_program(argv);
  return true;
} catch (const Error&) {
  return false;
}

Crew::Crew(std::string name, const std::vector<WorkerSpec>& specs) : name_(std::move(name)) {
  ::signal(SIGPIPE, SIG_IGN);  // A member that died is found by its missing answer.
  for (const WorkerSpec& spec : specs) members_.push_back({start_child(spec, ChildInput::kPipe), {}, {}});
}

Crew::~Crew() {
  for (Member& member : members_) member.child.in.reset();
  for (Member& member : members_) {
    // The end of standard input ends a member; one that is stuck in a collective needs more.
    for (int tries = 0; tries < 50; ++tries) {
      if (::waitpid(member.child.pid, nullptr, WNOHANG) != 0) break;
      if (tries == 40) ::kill(member.child.pid, SIGKILL);
      ::usleep(50000);
    }
  }
}

bool Crew::read_answer(Member& member) {
  const bool open = drain(member.child.out.get(), member.answer);
  drain(member.child.err.get(), member.words);
  if (!open && member.answer.find('\n') == std::string::npos) {
    ::usleep(100000);  // For its last words.
    drain(member.child.err.get(), member.words);
    throw Error(name_ + " rank " + std::to_string(&member - members_.data()) +
                " ended; its last words: " + member.words);
  }
  return member.answer.find('\n') != std::string::npos;
}

std::vector<std::vector<double>> Crew::command(const std::string& line, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const std::string text = line + "\n";
  for (Member& member : members_) {
    member.answer.clear();
    if (::write(member.child.in.get(), text.data(), text.size()) < 0) read_answer(member);
  }
  std::vector<std::vector<double>> answers;
  for (Member& member : members_) {
    while (!read_answer(member)) {
      if (std::chrono::steady_clock::now() > end)
        throw Error(name_ + " gave no answer to `" + line + "` within " + std::to_string(seconds) + " s");
      pollfd stream{member.child.out.get(), POLLIN, 0};
      ::poll(&stream, 1, 1000);
    }
    std::istringstream words(member.answer);
    std::string ok;
    words >> ok;
    if (ok != "ok") throw Error(name_ + " answered `" + line + "` with: " + member.answer);
    answers.emplace_back();
    for (double number; words >> number;) answers.back().push_back(number);
  }
  return answers;
}

}  // namespace accordion::bench
