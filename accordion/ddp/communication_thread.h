// The one thread that calls exchange. Backward posts a bucket as soon as it is full and goes on; buckets are
// exchanged in the order they were posted, which is the same on every rank.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "accordion/exchange/exchange.h"

namespace accordion {

// How well communication hid behind backward.
struct Overlap {
  double busy_seconds = 0;     // In exchange.
  double exposed_seconds = 0;  // Of these, after backward had handed over its last bucket.

  double hidden_share() const { return busy_seconds > 0 ? 1 - exposed_seconds / busy_seconds : 1; }
};

// What a step's gradients become when a rank had values that are not finite. In any case nothing of the step
// is kept.
enum class NonFinite {
  kPropagate,  // NaN, which a loss scaler takes as a sign to skip the step.
  kSkip,       // Zero.
  kThrow,      // An Error on every rank.
};

struct CommunicationOptions {
  NonFinite on_non_finite = NonFinite::kPropagate;
  // Exchange starts when the step's last bucket is there: nothing is hidden behind backward.
  bool deferred = false;
  // Limit of the norm of all of this rank's gradients, applied before they are encoded; 0 for none. Needs all
  // of a step's buckets, so it implies `deferred`.
  double clip_norm = 0;
};

class CommunicationThread {
 public:
  using Future = c10::intrusive_ptr<c10::ivalue::Future>;

  explicit CommunicationThread(Exchange& exchange, CommunicationOptions options = {});
  ~CommunicationThread();  // Completes what was posted.

  // `bucket` is flat, in host memory, of float or double. The future gives it back holding the mean, or the
  // error. It completes with the step's last bucket, because only then is it known whether the step was
  // finite on every rank.
  Future post(at::Tensor bucket, std::vector<Slice> slices, bool last);

  Overlap take_overlap();

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    at::Tensor bucket;
    std::vector<Slice> slices;
    bool last;
    Future done;
    Clock::time_point posted;
  };

  void run();
  void clip(const std::vector<Job>& step);
  void exchange_bucket(const Job& job);
  void end_step(const std::vector<Job>& step);

  Exchange& exchange_;
  CommunicationOptions options_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Job> jobs_;
  bool stop_ = false;
  Overlap overlap_;
  std::thread thread_;  // Last: starts when everything else is there.
};

}  // namespace accordion
