#include "accordion/engine/epoch_trace.h"

#include "accordion/base/json.h"

namespace accordion {
namespace {

// A rank is a process of the trace, and what it does at a time a thread.
enum Track { kStep = 1, kEncode = 2, kExchange = 3 };

class Events {
 public:
  Events(StepClock::time_point begin, int rank) : begin_(begin), rank_(rank) {}

  void name(const char* what, const std::string& name, int track = 0) {
    add({{"name", what}, {"ph", "M"}, {"pid", rank_}, {"tid", track}, {"args", {{"name", name}}}});
  }

  void span(Track track, const std::string& name, StepClock::time_point from, StepClock::time_point to,
            const Json& args) {
    if (to < from) return;
    add({{"name", name},
         {"ph", "X"},
         {"pid", rank_},
         {"tid", track},
         {"ts", microseconds(from)},
         {"dur", 1e6 * seconds_between(from, to)},
         {"args", args}});
  }

  void instant(Track track, const std::string& name, StepClock::time_point at, const Json& args) {
    add({{"name", name},
         {"ph", "i"},
         {"s", "t"},
         {"pid", rank_},
         {"tid", track},
         {"ts", microseconds(at)},
         {"args", args}});
  }

  std::string take() { return std::move(text_); }

 private:
  double microseconds(StepClock::time_point time) const { return 1e6 * seconds_between(begin_, time); }
  void add(const Json& event) { text_ += (text_.empty() ? "" : ",\n") + event.dump(); }

  StepClock::time_point begin_;
  int rank_;
  std::string text_;
};

void add_bucket(Events& events, const BucketTrace& bucket, std::size_t step, std::size_t place) {
  const std::string name = "bucket " + std::to_string(place);
  std::size_t elements = 0;
  for (const Slice& slice : bucket.slices) elements += slice.count;
  const Json args = {{"step", step}, {"bucket", place}, {"elements", elements}};
  events.instant(kStep, "ready: " + name, bucket.ready, args);
  if (bucket.elsewhere) return;
  const BucketTimes& times = bucket.times;
  events.span(kEncode, "encode: " + name, times.prepare_begin, times.prepare_end, args);
  for (std::size_t i = 0; i < times.collectives.size(); ++i) {
    const CollectiveTime& message = times.collectives[i];
    Json of_message = args;
    of_message["bytes"] = message.bytes;
    events.span(kExchange, "wire: " + name, message.begin, message.end, of_message);
    const bool last = i + 1 == times.collectives.size();
    events.span(kExchange, "decode: " + name, message.end, last ? times.end : times.collectives[i + 1].begin,
                args);
  }
}

}  // namespace

std::string trace_events(const std::vector<StepTrace>& steps, StepClock::time_point begin, int rank) {
  Events events(begin, rank);
  events.name("process_name", "rank " + std::to_string(rank));
  events.name("thread_name", "steps, and buckets that become ready", kStep);
  events.name("thread_name", "encoding", kEncode);
  events.name("thread_name", "wire and decoding", kExchange);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    // A step that nothing went before begins, as far as is known, with its first bucket.
    const StepTrace& step = steps[s];
    const auto from = step.begin ? *step.begin : step.buckets.empty() ? step.end : step.buckets.front().ready;
    events.span(kStep, "step " + std::to_string(s), from, step.end, {{"step", s}, {"kept", step.kept}});
    for (std::size_t b = 0; b < step.buckets.size(); ++b) add_bucket(events, step.buckets[b], s, b);
  }
  return events.take();
}

EpochTrace::EpochTrace(Engine& engine, Communicator& control) : engine_(engine), control_(control) {
  std::int32_t together = 0;
  control_.max(std::span(&together, 1));
  begin_ = StepClock::now();
  engine_.watch_steps([steps = steps_](const StepTrace& step) {
    if (steps->size() < kMostSteps) steps->push_back(step);
  });
}

std::string EpochTrace::finish() {
  engine_.settle();
  engine_.watch_steps({});
  const std::string mine = trace_events(*steps_, begin_, control_.rank());
  const auto ranks = static_cast<std::size_t>(control_.size());
  std::vector<std::uint64_t> lengths(ranks);
  const std::uint64_t length = mine.size();
  control_.gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)));
  std::vector<std::string> all(ranks);
  std::vector<std::span<std::byte>> places;
  for (std::size_t r = 0; r < ranks; ++r) {
    all[r].resize(lengths[r]);
    places.push_back(std::as_writable_bytes(std::span(all[r])));
  }
  control_.gather(std::as_bytes(std::span(mine)), places);
  if (control_.rank() != 0) return "";
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (std::size_t r = 0; r < ranks; ++r) text += (r ? ",\n" : "") + all[r];
  return text + "\n]}\n";
}

}  // namespace accordion
