#include "accordion/launch/supervise.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>

#include "accordion/launch/forward.h"
#include "accordion/launch/stop_signals.h"

namespace accordion {
namespace {

using std::chrono::milliseconds;
using Clock = Outlet::Clock;
using Time = Clock::time_point;

// After a rank has exited with an error, wait this long for one that was killed: a process closes its
// connections a little before it counts as dead, so that its peers' complaints can come first.
constexpr milliseconds kSettle(100);
constexpr milliseconds kDoubleSignal(100);  // `timeout` sends its signal twice.
constexpr milliseconds kWithoutPidfd(20);

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

std::string signal_text(int signal) {
  const char* description = ::sigdescr_np(signal);
  return "signal " + std::to_string(signal) + (description ? " (" + std::string(description) + ")" : "");
}

struct Worker {
  Worker(int rank, Child started, Outlet& out_to, Outlet& err_to)
      : rank(rank),
        pid(started.pid),
        pidfd(std::move(started.pidfd)),
        out(std::move(started.out), rank, out_to, nullptr),
        err(std::move(started.err), rank, err_to, &words) {}
  Worker(const Worker&) = delete;  // `err` points to `words`.
  Worker& operator=(const Worker&) = delete;

  int rank;
  pid_t pid;
  UniqueFd pidfd;
  LastWords words;
  Inlet out, err;
  bool alive = true;
  bool killed = false;  // By us, because it did not heed SIGTERM.
  int status = 0;       // As waitpid gives it.

  // Its whole group: a shell script's commands too. Alive or a zombie, so the number is still its own.
  void send(int signal) const { ::kill(-pid, signal); }
};

// How likely this end is a cause rather than a consequence, smaller being likelier. A lost peer makes a
// process exit with an error, or abort on an uncaught exception; it does not make it be killed or find fault
// with its options.
int suspicion(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status) == 2 ? 2 : 3;
  return WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGPIPE ? 1 : 0;
}

class Supervisor {
 public:
  explicit Supervisor(const SuperviseOptions& options)
      : options_(options), out_(options.out), err_(options.err) {}
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  void start(const std::vector<WorkerSpec>& specs);
  Ending run();

 private:
  bool any_alive() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->alive; });
  }
  bool output_waits() const {
    return out_.waiting() || err_.waiting() || out_.held_until() || err_.held_until();
  }
  void wait_for_events();
  int poll_timeout() const;
  void take_signals();
  void take_deaths();
  void judge(Worker& worker);
  void meet_deadlines();
  void terminate_all(Clock::duration grace);
  void kill_all();
  Ending ending() const;

  const SuperviseOptions options_;
  StopSignals signals_;
  Outlet out_, err_;
  std::vector<std::unique_ptr<Worker>> workers_;
  const Worker* first_ = nullptr;  // To fail.
  std::optional<Time> settle_at_;  // When first_ is final, and the others are told.
  std::optional<Time> kill_at_;
  bool terminated_ = false;  // SIGTERM has been sent.
  bool stopping_for_failure_ = false;
  int interrupted_ = 0;
  Time interrupted_at_;
};

Supervisor::~Supervisor() {
  for (auto& worker : workers_) {
    if (!worker->alive) continue;
    worker->send(SIGKILL);
    while (::waitpid(worker->pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void Supervisor::start(const std::vector<WorkerSpec>& specs) {
  for (const WorkerSpec& spec : specs)
    workers_.push_back(std::make_unique<Worker>(options_.first_rank + static_cast<int>(workers_.size()),
                                                start_child(spec), out_, err_));
}

Ending Supervisor::run() {
  while (any_alive() || output_waits()) {
    wait_for_events();
    take_signals();
    take_deaths();
    meet_deadlines();
  }
  return ending();
}

int Supervisor::poll_timeout() const {
  std::optional<Time> next;
  const auto consider = [&](std::optional<Time> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  for (const auto& time : {settle_at_, kill_at_, out_.held_until(), err_.held_until()}) consider(time);
  for (const auto& worker : workers_)
    if (worker->alive && !worker->pidfd.is_open()) consider(Clock::now() + kWithoutPidfd);
  if (!next) return -1;
  const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

void Supervisor::wait_for_events() {
  std::vector<pollfd> polled = {{.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
  std::vector<Inlet*> inlets;
  std::vector<Outlet*> outlets;
  for (auto& worker : workers_)
    for (Inlet* inlet : {&worker->out, &worker->err})
      if (inlet->wants_reading()) {
        polled.push_back({.fd = inlet->fd(), .events = POLLIN, .revents = 0});
        inlets.push_back(inlet);
      }
  for (Outlet* outlet : {&out_, &err_})
    if (outlet->waiting()) {
      polled.push_back({.fd = outlet->fd(), .events = POLLOUT, .revents = 0});
      outlets.push_back(outlet);
    }
  for (auto& worker : workers_)
    if (worker->alive && worker->pidfd.is_open())
      polled.push_back({.fd = worker->pidfd.get(), .events = POLLIN, .revents = 0});

  if (::poll(polled.data(), polled.size(), poll_timeout()) <= 0) return;
  std::size_t at = 1;
  for (Inlet* inlet : inlets)
    if (polled[at++].revents) inlet->read_some();
  for (Outlet* outlet : outlets)
    if (polled[at++].revents) outlet->write_some();
}

void Supervisor::take_signals() {
  while (const std::optional<int> signal = signals_.take()) {
    if (!any_alive()) {  // Whoever should read our output does not.
      out_.give_up();
      err_.give_up();
    }
    if (!interrupted_) {
      interrupted_ = *signal;
      interrupted_at_ = Clock::now();
      terminate_all(seconds(options_.stop_seconds));
    } else if (*signal == SIGINT && Clock::now() - interrupted_at_ > kDoubleSignal) {
      kill_all();
    }
  }
}

void Supervisor::take_deaths() {
  std::vector<Worker*> failed;
  for (auto& worker : workers_) {
    if (!worker->alive) continue;
    siginfo_t info{};
    const auto id = static_cast<id_t>(worker->pid);
    if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) continue;
    worker->send(SIGKILL);  // What it left behind, while the zombie still keeps the group's number.
    ::waitpid(worker->pid, &worker->status, 0);
    worker->alive = false;
    worker->pidfd.reset();
    worker->out.finish();
    worker->err.finish();
    if (worker->status != 0) failed.push_back(worker.get());
  }
  std::stable_sort(failed.begin(), failed.end(), [](const Worker* a, const Worker* b) {
    return suspicion(a->status) < suspicion(b->status);
  });
  for (Worker* worker : failed) judge(*worker);
}

void Supervisor::judge(Worker& worker) {
  if (stopping_for_failure_) return;
  const int signal = WIFSIGNALED(worker.status) ? WTERMSIG(worker.status) : 0;
  if (terminated_ && (signal == SIGTERM || signal == SIGKILL)) return;  // Ours.
  if (!first_ || (suspicion(worker.status) == 0 && suspicion(first_->status) > 0)) {
    const bool certain = suspicion(worker.status) == 0;
    if (!settle_at_ || certain) settle_at_ = certain ? Clock::now() : Clock::now() + kSettle;
    first_ = &worker;
  }
}

void Supervisor::meet_deadlines() {
  const Time now = Clock::now();
  for (Outlet* outlet : {&out_, &err_}) outlet->release_if_due();
  if (settle_at_ && now >= *settle_at_) {
    settle_at_.reset();
    stopping_for_failure_ = true;
    terminate_all(seconds(options_.grace_seconds));
  }
  if (kill_at_ && now >= *kill_at_) kill_all();
}

void Supervisor::terminate_all(Clock::duration grace) {
  const Time deadline = Clock::now() + grace;
  kill_at_ = kill_at_ ? std::min(*kill_at_, deadline) : deadline;
  if (!terminated_)
    for (const auto& worker : workers_)
      if (worker->alive) worker->send(SIGTERM);
  terminated_ = true;
}

void Supervisor::kill_all() {
  kill_at_.reset();
  terminated_ = true;
  for (auto& worker : workers_) {
    if (!worker->alive) continue;
    worker->send(SIGKILL);
    worker->killed = true;
  }
}

Ending Supervisor::ending() const {
  Ending ending{.status = 0, .interrupted = interrupted_, .message = ""};
  if (first_) {
    const int status = first_->status;
    ending.status = WIFEXITED(status) && WEXITSTATUS(status) == 2 ? 2 : 1;
    ending.message = "rank " + std::to_string(first_->rank) +
                     (WIFSIGNALED(status) ? " was killed by " + signal_text(WTERMSIG(status))
                                          : " exited with status " + std::to_string(WEXITSTATUS(status)));
    std::string words = first_->words.text();
    const bool several = words.find('\n') != std::string::npos;
    for (std::size_t at = 0; several && (at = words.find('\n', at)) != std::string::npos; at += 3)
      words.replace(at, 1, "\n  ");
    if (!words.empty()) ending.message += "; its last words:" + (several ? "\n  " + words : " " + words);
    return ending;
  }
  std::string killed;
  for (const auto& worker : workers_) {
    if (worker->status != 0) ending.status = 1;
    if (worker->killed && WIFSIGNALED(worker->status))
      killed += (killed.empty() ? "" : ", ") + std::to_string(worker->rank);
  }
  if (ending.status != 0) ending.message = "stopped by " + signal_text(interrupted_);
  if (!killed.empty()) ending.message += "; had to be killed: rank " + killed;
  return ending;
}

}  // namespace

Ending supervise(const std::vector<WorkerSpec>& workers, const SuperviseOptions& options) {
  Supervisor supervisor(options);
  supervisor.start(workers);
  return supervisor.run();
}

}  // namespace accordion
