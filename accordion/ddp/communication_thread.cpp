#include "accordion/ddp/communication_thread.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace accordion {

CommunicationThread::CommunicationThread(Exchange& exchange) : exchange_(exchange), thread_([this] { run(); }) {}

CommunicationThread::~CommunicationThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

CommunicationThread::Future CommunicationThread::post(at::Tensor bucket, std::vector<Slice> slices, bool last) {
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

void CommunicationThread::exchange_bucket(Job& job) {
  const auto count = static_cast<std::size_t>(job.bucket.numel());
  if (job.bucket.scalar_type() == at::kFloat)
    exchange_.mean(std::span(job.bucket.data_ptr<float>(), count), job.slices, job.last);
  else
    exchange_.mean(std::span(job.bucket.data_ptr<double>(), count), job.last);
}

void CommunicationThread::run() {
  std::unique_lock lock(mutex_);
  double busy = 0;  // In this step.
  while (true) {
    posted_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();

    const auto begin = Clock::now();
    std::exception_ptr failure;
    try {
      exchange_bucket(job);
    } catch (...) {
      failure = std::current_exception();
    }
    const auto end = Clock::now();

    lock.lock();
    busy += std::chrono::duration<double>(end - begin).count();
    if (job.last) {
      overlap_.busy_seconds += busy;
      // Backward ends with the last bucket: what runs after that was not hidden. The wait for this thread to wake is
      // no communication.
      overlap_.exposed_seconds += std::min(busy, std::chrono::duration<double>(end - job.posted).count());
      busy = 0;
    }
    lock.unlock();
    if (failure)
      job.done->setError(failure);
    else
      job.done->markCompleted(job.bucket);
    lock.lock();
  }
}

}  // namespace accordion
