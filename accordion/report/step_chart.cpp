#include "accordion/report/step_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace accordion {
namespace {

class Row {
 public:
  Row(int width, double whole)
      : columns_(static_cast<std::size_t>(width), ' '), taken_(columns_.size()), whole_(whole) {}

  // From the column that it takes half of on; what is shorter than a column shows in one all the same. Of several in a column the
  // longest shows.
  void draw(const perf::Interval& interval, char mark) {
    if (!(interval.end > interval.begin)) return;
    const double begin = place(interval.begin), end = place(interval.end);
    const auto count = columns_.size();
    const std::size_t first = end - begin < 1
                                  ? std::min(count - 1, static_cast<std::size_t>((begin + end) / 2))
                                  : static_cast<std::size_t>(std::lround(begin));
    const std::size_t last = std::max(first + 1, static_cast<std::size_t>(std::lround(end)));
    for (std::size_t c = first; c < last && c < count; ++c) {
      const double from = static_cast<double>(c), taken = std::min(end, from + 1) - std::max(begin, from);
      if (columns_[c] != ' ' && taken <= taken_[c]) continue;
      columns_[c] = mark;
      taken_[c] = taken;
    }
  }

  std::string text() const { return columns_.substr(0, columns_.find_last_not_of(' ') + 1); }

 private:
  double place(double seconds) const {
    return std::clamp(seconds / whole_, 0.0, 1.0) * static_cast<double>(columns_.size());
  }

  std::string columns_;
  std::vector<double> taken_;  // Of a column, by what shows in it.
  double whole_;
};

std::string bucket_row(const perf::BucketTimeline& bucket, int width, double whole) {
  Row row(width, whole);
  row.draw(bucket.first_encode, 'e');
  for (const perf::Interval& interval : bucket.wire) row.draw(interval, 'w');
  for (const perf::Interval& interval : bucket.encode) row.draw(interval, 'e');
  for (const perf::Interval& interval : bucket.decode) row.draw(interval, 'd');
  return row.text();
}

std::string backward_row(const perf::Timeline& step, int width, double whole) {
  Row row(width, whole);
  row.draw({0, step.backward}, 'b');
  return row.text();
}

std::string number(double ms) {
  char text[32];
  std::snprintf(text, sizeof text, ms < 10 ? "%.2f" : ms < 100 ? "%.1f" : "%.0f", ms);
  return text;
}

}  // namespace

std::string step_chart(const perf::Timeline& measured, const perf::Timeline& predicted, int width) {
  const double whole = std::max(measured.seconds, predicted.seconds);
  const double off = measured.seconds > 0 ? 100 * (predicted.seconds / measured.seconds - 1) : 0;
  char percent[32];
  std::snprintf(percent, sizeof percent, "%+.1f %%", off);
  std::string text =
      "One step: " + number(1e3 * measured.seconds) + " ms measured, " + number(1e3 * predicted.seconds) +
      " ms predicted (" + percent +
      ").\nb: until the last gradient is there, e: encoding, w: wire, d: decoding and what lies between "
      "messages.\n\n";
  const auto add = [&](const std::string& name, const std::string& ours, const std::string& foreseen) {
    char label[32];
    std::snprintf(label, sizeof label, "%-10s ", name.c_str());
    text += label + ("measured  |" + ours) + "\n           predicted |" + foreseen + "\n";
  };
  add("backward", backward_row(measured, width, whole), backward_row(predicted, width, whole));
  for (std::size_t b = 0; b < measured.buckets.size(); ++b)
    add("bucket " + std::to_string(b), bucket_row(measured.buckets[b], width, whole),
        b < predicted.buckets.size() ? bucket_row(predicted.buckets[b], width, whole) : "");
  char axis[160];
  std::snprintf(axis, sizeof axis, "%21s0%*s\n", "", width, (number(1e3 * whole) + " ms").c_str());
  return text + axis;
}

}  // namespace accordion
