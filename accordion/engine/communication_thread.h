// The threads that call exchange. Backward posts a bucket as soon as it is full and goes on; buckets are
// exchanged in the order they were posted, which is the same on every rank. One thread prepares, which calls no
// collective; the other moves messages. So the next bucket is encoded while the last one's messages travel.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "accordion/engine/communication_options.h"
#include "accordion/engine/epoch_report.h"
#include "accordion/engine/step_trace.h"
#include "accordion/exchange/exchange.h"

namespace accordion {

struct PostedBucket {
  Values values;
  std::vector<Slice> slices;
  bool last = false;  // Of its step.
  // Where ranks may not use all tensors: a flag a slice, whether this one did. Empty: all are used.
  std::vector<char> used = {};
  // Of values that are still on their way into host memory: returns when they are there. Called once, by another thread.
  std::function<void()> arrive = {};
  // The caller takes the mean of a bucket that goes dense by other means; `values` is empty. Called once, when all that was
  // posted before has been exchanged: waits for that mean, and says whether all of it is finite.
  std::function<bool()> elsewhere = {};
  std::size_t elsewhere_bytes = 0;
};

class CommunicationThread {
 public:
  // Called once a bucket, when the step's last one has been exchanged: only then is it known whether the step
  // was finite on every rank. The bucket then holds the mean; or why it does not.
  using Done = std::function<void(std::exception_ptr)>;

  // Called when a step's last bucket has been exchanged and nothing of the next one has been begun: may change levels, and call
  // collectives. What it throws fails the step.
  using StepEnd = std::function<void(const StepTrace&)>;

  explicit CommunicationThread(Exchange& exchange, CommunicationOptions options = {},
                               StepEnd at_step_end = {});
  ~CommunicationThread();  // Completes what was posted.

  // After a step that failed on this rank alone, its messages and the others' no longer belong together: what is
  // posted later fails too.
  void post(PostedBucket bucket, Done done);

  // Returns when all that was posted has been exchanged, but for a step whose last bucket is still to come.
  void settle();

  const CommunicationOptions& options() const { return options_; }

  // Whether the last step that has ended was kept.
  bool last_step_kept();
  // When its last bucket came: from then on this rank has waited for the others.
  StepClock::time_point last_ready();
  Overlap take_overlap();

  // Something else comes before the next step: an evaluation, a checkpoint.
  void pause();

 private:
  using Clock = StepClock;
  struct Job {
    PostedBucket bucket;
    Done done;
    Clock::time_point posted, ready;
    bool prepared = false;
    BucketTimes times = {};
    std::exception_ptr failure = nullptr;
  };
  // Counts a thread as busy while it lives.
  class Busy;

  bool may_prepare() const;
  void prepare_buckets();
  void prepare(Job& job);
  static void arrive(Job& job);
  void move_buckets();
  void move(Job& job);
  void end_step(std::vector<Job>& step);
  StepTrace trace_of(std::vector<Job>& step, bool kept);
  void give_up_step();
  void clip();

  Exchange& exchange_;
  CommunicationOptions options_;
  StepEnd at_step_end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> posted_, prepared_;
  int under_way_ = 0;                          // Prepared and not yet moved.
  bool begins_step_ = true;                    // The bucket to be prepared next.
  bool step_ended_ = true;                     // Whether the step whose last bucket was prepared has ended.
  std::optional<Clock::time_point> last_end_;  // Of a step, if nothing came after it.
  bool kept_ = true;
  Clock::time_point last_ready_ = {};
  bool stop_ = false, all_prepared_ = false;
  std::exception_ptr failure_;  // Of the step under way, and of all that follow once broken.
  bool broken_ = false;
  int busy_ = 0;
  Clock::time_point busy_since_;
  double busy_seconds_ = 0;  // Of the step under way.
  Overlap overlap_;
  std::array<std::thread, 2> threads_;  // Last: start when everything else is there.
};

}  // namespace accordion
