#include "accordion/engine/communication_thread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "accordion/base/error.h"

namespace accordion {
namespace {

constexpr int kMostUnderWay = 2;  // What an exchange has room for.

// All ranks throw it at once, after the same collective: they can go on.
struct NotFinite : Error {
  NotFinite() : Error("a rank's gradients are not finite; nothing of the step was kept") {}
};

std::string reason_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown";
  }
}

}  // namespace

class CommunicationThread::Busy {
 public:
  explicit Busy(CommunicationThread& owner) : owner_(owner) {
    std::lock_guard lock(owner_.mutex_);
    if (owner_.busy_++ == 0) owner_.busy_since_ = Clock::now();
  }
  ~Busy() {
    std::lock_guard lock(owner_.mutex_);
    if (--owner_.busy_ > 0) return;
    owner_.busy_seconds_ += std::chrono::duration<double>(Clock::now() - owner_.busy_since_).count();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  CommunicationThread& owner_;
};

CommunicationThread::CommunicationThread(Exchange& exchange, CommunicationOptions options,
                                         StepEnd at_step_end)
    : exchange_(exchange),
      options_(options),
      at_step_end_(std::move(at_step_end)),
      threads_{std::thread([this] { prepare_buckets(); }), std::thread([this] { move_buckets(); })} {}

CommunicationThread::~CommunicationThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CommunicationThread::post(PostedBucket bucket, Done done) {
  {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    posted_.push_back({std::move(bucket), std::move(done), now, now});
  }
  changed_.notify_all();
}

void CommunicationThread::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return under_way_ == 0 && !may_prepare(); });
}

bool CommunicationThread::last_step_kept() {
  std::lock_guard lock(mutex_);
  return kept_;
}

StepClock::time_point CommunicationThread::last_ready() {
  std::lock_guard lock(mutex_);
  return last_ready_;
}

void CommunicationThread::pause() {
  std::lock_guard lock(mutex_);
  last_end_.reset();
}

Overlap CommunicationThread::take_overlap() {
  std::lock_guard lock(mutex_);
  return std::exchange(overlap_, {});
}

// A step's codecs must have kept or dropped what they learned before the next step encodes.
bool CommunicationThread::may_prepare() const {
  if (posted_.empty() || under_way_ == kMostUnderWay || !step_ended_) return false;
  const bool waits_for_last = options_.deferred || options_.clip_norm > 0;
  return !waits_for_last || !begins_step_ ||
         std::any_of(posted_.begin(), posted_.end(), [](const Job& job) { return job.bucket.last; });
}

void CommunicationThread::prepare_buckets() {
  std::unique_lock lock(mutex_);
  while (true) {
    // A step that waits for buckets nobody will post is not begun.
    changed_.wait(lock, [&] { return may_prepare() || (stop_ && under_way_ == 0); });
    if (!may_prepare()) {
      all_prepared_ = true;
      changed_.notify_all();
      return;
    }
    if (begins_step_ && options_.clip_norm > 0) clip();
    Job job = std::move(posted_.front());
    posted_.pop_front();
    begins_step_ = job.bucket.last;
    step_ended_ = !job.bucket.last;
    ++under_way_;
    // Which tensors count must first be agreed on where ranks may not use them all, and only the other thread
    // talks to the ranks.
    const bool ahead = job.bucket.used.empty() && !job.bucket.elsewhere && !failure_;
    lock.unlock();
    arrive(job);
    if (ahead && !job.failure) prepare(job);
    lock.lock();
    prepared_.push_back(std::move(job));
    changed_.notify_all();
  }
}

void CommunicationThread::arrive(Job& job) {
  try {
    if (!job.bucket.arrive) return;
    std::exchange(job.bucket.arrive, {})();
    job.ready = Clock::now();
  } catch (...) {
    job.failure = std::current_exception();
  }
}

// Of the step that lies posted. A norm that is not finite is left to the exchange to notice.
void CommunicationThread::clip() {
  auto end = std::find_if(posted_.begin(), posted_.end(), [](const Job& job) { return job.bucket.last; });
  if (end != posted_.end()) ++end;
  for (auto job = posted_.begin(); job != end; ++job) arrive(*job);
  double squares = 0;
  for (auto job = posted_.begin(); job != end; ++job) squares += sum_of_squares(job->bucket.values);
  const double norm = std::sqrt(squares) / exchange_.scale();
  if (!(norm > options_.clip_norm) || !std::isfinite(norm)) return;
  for (auto job = posted_.begin(); job != end; ++job) scale(job->bucket.values, options_.clip_norm / norm);
}

void CommunicationThread::prepare(Job& job) {
  const Busy busy(*this);
  try {
    exchange_.prepare({job.bucket.values, job.bucket.slices});
  } catch (...) {
    job.failure = std::current_exception();
  }
  job.prepared = true;
}

void CommunicationThread::move_buckets() {
  std::vector<Job> step;  // The step under way: moved, but not given back.
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !prepared_.empty() || all_prepared_; });
    if (prepared_.empty()) return;
    step.push_back(std::move(prepared_.front()));
    prepared_.pop_front();
    std::exception_ptr failure = failure_;
    lock.unlock();

    Job& job = step.back();
    const bool last = job.bucket.last;
    const Clock::time_point posted = job.posted;
    if (!failure) {
      const Busy busy(*this);
      try {
        move(job);
        if (last) end_step(step);
      } catch (...) {
        failure = std::current_exception();
      }
    }
    lock.lock();
    failure_ = failure;
    --under_way_;
    if (last) {
      if (failure_) give_up_step();
      step_ended_ = true;
      overlap_.busy_seconds += busy_seconds_;
      // Backward ends with the last bucket: what runs after that was not hidden. The wait for this thread to
      // wake is no communication.
      overlap_.exposed_seconds +=
          std::min(busy_seconds_, std::chrono::duration<double>(Clock::now() - posted).count());
      busy_seconds_ = 0;
    }
    changed_.notify_all();
    if (!last && !failure) continue;
    lock.unlock();
    for (Job& ended : step) ended.done(failure);
    step.clear();
    lock.lock();
  }
}

void CommunicationThread::move(Job& job) {
  if (job.failure) std::rethrow_exception(job.failure);
  if (job.bucket.elsewhere) {
    const bool finite = job.bucket.elsewhere();
    return exchange_.count_elsewhere(job.bucket.elsewhere_bytes, job.bucket.slices, finite);
  }
  if (!job.prepared) {
    if (exchange_.owes()) job.bucket.slices = exchange_.used_by_any(job.bucket.slices, job.bucket.used);
    exchange_.prepare({job.bucket.values, job.bucket.slices});
  }
  job.times = exchange_.run();
}

// Backward is over when its last bucket comes; where the exchange waits for that, all buckets do.
StepTrace CommunicationThread::trace_of(std::vector<Job>& step, bool kept) {
  StepTrace trace{.end = Clock::now(), .kept = kept};
  for (Job& job : step)
    trace.buckets.push_back({job.bucket.slices,
                             options_.deferred || options_.clip_norm > 0 ? step.back().ready : job.ready,
                             static_cast<bool>(job.bucket.elsewhere), std::move(job.times)});
  return trace;
}

void CommunicationThread::end_step(std::vector<Job>& step) {
  const bool kept = exchange_.end_step();
  StepTrace trace;
  if (at_step_end_) trace = trace_of(step, kept);
  {
    std::lock_guard lock(mutex_);
    kept_ = kept;
    last_ready_ = step.back().ready;
    trace.begin = last_end_;
  }
  if (at_step_end_) {
    at_step_end_(trace);
    std::lock_guard lock(mutex_);
    last_end_ = Clock::now();
  }
  if (kept) return;
  if (options_.on_non_finite == NonFinite::kThrow) throw NotFinite();
  const double value =
      options_.on_non_finite == NonFinite::kSkip ? 0 : std::numeric_limits<double>::quiet_NaN();
  for (const Job& job : step) fill(job.bucket.values, value);
}

// Nothing of a failed step is kept. Where all ranks failed alike, the next step may do better.
void CommunicationThread::give_up_step() {
  try {
    std::rethrow_exception(failure_);
  } catch (const NotFinite&) {
    failure_ = nullptr;
    return;
  } catch (...) {
  }
  kept_ = false;
  if (!std::exchange(broken_, true)) {
    const std::string reason = reason_of(failure_);
    exchange_.abandon_step(reason);
    failure_ = std::make_exception_ptr(
        Error("no gradients are exchanged any more, because an earlier step failed: " + reason));
  }
}

}  // namespace accordion
