#include "accordion/ddp/communication_thread.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace accordion {

CommunicationThread::CommunicationThread(Exchange& exchange)
    : exchange_(exchange), thread_([this] { run(); }) {}

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

void CommunicationThread::end_step(const std::vector<Job>& step) {
  if (exchange_.end_step()) return;
  for (const Job& job : step) job.bucket.fill_(std::numeric_limits<double>::quiet_NaN());
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
      exchange_bucket(step.back());
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
