#include "accordion/ddp/communication_thread.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "accordion/base/error.h"
#include "accordion/kernels/dense.h"

namespace accordion {

CommunicationThread::CommunicationThread(Exchange& exchange, CommunicationOptions options)
    : exchange_(exchange), options_(options), thread_([this] { run(); }) {}

CommunicationThread::~CommunicationThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

CommunicationThread::Future CommunicationThread::post(at::Tensor bucket, std::vector<Slice> slices,
                                                      bool last) {
  auto done = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(bucket), std::move(slices), last, done, Clock::now()});
  }
  posted_.notify_one();
  return done;
}

Overlap CommunicationThread::take_overlap() {
  std::lock_guard lock(mutex_);
  return std::exchange(overlap_, {});
}

void CommunicationThread::exchange_bucket(const Job& job) {
  const auto count = static_cast<std::size_t>(job.bucket.numel());
  if (job.bucket.scalar_type() == at::kFloat)
    exchange_.mean(std::span(job.bucket.data_ptr<float>(), count), job.slices);
  else
    exchange_.mean(std::span(job.bucket.data_ptr<double>(), count), job.slices);
}

// A norm that is not finite is left to the exchange to notice.
void CommunicationThread::clip(const std::vector<Job>& step) {
  double squares = 0;
  for (const Job& job : step)
    squares += job.bucket.scalar_type() == at::kFloat
                   ? kernels::sum_of_squares(
                         {job.bucket.data_ptr<float>(), static_cast<std::size_t>(job.bucket.numel())})
                   : std::pow(job.bucket.norm().item<double>(), 2);
  const double norm = std::sqrt(squares);
  if (!(norm > options_.clip_norm) || !std::isfinite(norm)) return;
  for (const Job& job : step) job.bucket.mul_(options_.clip_norm / norm);
}

void CommunicationThread::end_step(const std::vector<Job>& step) {
  if (exchange_.end_step()) return;
  if (options_.on_non_finite == NonFinite::kThrow)
    throw Error("a rank's gradients are not finite; nothing of the step was kept");
  const double value =
      options_.on_non_finite == NonFinite::kSkip ? 0 : std::numeric_limits<double>::quiet_NaN();
  for (const Job& job : step) job.bucket.fill_(value);
}

void CommunicationThread::run() {
  std::vector<Job> step;  // Of the step under way: exchanged, but not given back.
  double busy = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    step.push_back(std::move(jobs_.front()));
    jobs_.pop_front();
    lock.unlock();

    const bool last = step.back().last;
    const auto posted = step.back().posted, begin = Clock::now();
    std::exception_ptr failure;
    try {
      if (!options_.deferred && options_.clip_norm == 0) {
        exchange_bucket(step.back());
      } else if (last) {
        if (options_.clip_norm > 0) clip(step);
        for (const Job& job : step) exchange_bucket(job);
      }
      if (last) end_step(step);
    } catch (...) {
      failure = std::current_exception();
    }
    const auto end = Clock::now();
    busy += std::chrono::duration<double>(end - begin).count();

    if (last) {
      lock.lock();
      overlap_.busy_seconds += busy;
      // Backward ends with the last bucket: what runs after that was not hidden. The wait for this thread to
      // wake is no communication.
      overlap_.exposed_seconds += std::min(busy, std::chrono::duration<double>(end - posted).count());
      lock.unlock();
      busy = 0;
    }
    if (last || failure) {
      for (Job& job : step) failure ? job.done->setError(failure) : job.done->markCompleted(job.bucket);
      step.clear();
    }
    lock.lock();
  }
}

}  // namespace accordion
