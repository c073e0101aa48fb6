#include "bench/codec_table.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "accordion/base/json.h"

namespace accordion::bench {
namespace {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return line;
}

bool reached(const CodecTiming& timing, const CodecGoal& goal) {
  return !goal.over_bound || timing.over_bound() <= *goal.over_bound;
}

bool outruns(const CodecTiming& timing, const CodecGoal& goal) {
  return !goal.torch_ratio || !timing.torch_ms || timing.torch_ratio() >= *goal.torch_ratio;
}

std::string goal_text(const std::optional<double>& goal) {
  return goal ? number_text(*goal) : "";
}

}  // namespace

std::string table_head(const CodecBench& bench, int threads) {
  return text("%s, %zu parameters, %d thread%s; milliseconds\n\n", bench.model().c_str(), bench.parameters(),
              threads, threads == 1 ? "" : "s") +
         text("%-24s %7s %7s %7s %7s %7s %6s  %4s %8s %6s  %4s\n", "codec", "ratio", "encode", "decode",
              "of four", "bound", "over", "goal", "torch", "faster", "goal");
}

std::string table_row(const CodecTiming& timing) {
  const CodecGoal goal = goal_of(parse_codec(timing.codec));
  const double ratio = timing.payload_ratio();
  std::string row = text("%-24s %7s %7.1f %7.1f %7.1f %7.1f %6.2f%c %4s", timing.codec.c_str(),
                         text(ratio < 99.95 ? "x%.1f" : "x%.0f", ratio).c_str(), timing.encode_ms,
                         timing.decode_ms, timing.decode4_ms, timing.bound_ms(), timing.over_bound(),
                         reached(timing, goal) ? ' ' : '*', goal_text(goal.over_bound).c_str());
  if (timing.torch_ms)
    row += text(" %8.1f %6.1f%c %4s", *timing.torch_ms, timing.torch_ratio(),
                outruns(timing, goal) ? ' ' : '*', goal_text(goal.torch_ratio).c_str());
  return row + "\n";
}

std::string table_foot() {
  return "\nRatio: dense bytes over payload bytes. Of four: decoding four ranks' messages. Over: encoding "
         "over its\n"
         "bound, the time to stream the bytes it cannot avoid (PowerSGD: encoding and decoding over the "
         "bound of\n"
         "both; ATOMO: over its SVDs). Faster: torch's time over ours. *: misses its goal. All results were\n"
         "verified; tensors that go dense, such as biases, are left out.\n";
}

Json to_json(const CodecBench& bench, int threads, const CodecTiming& timing) {
  const CodecGoal goal = goal_of(parse_codec(timing.codec));
  const auto number_or_null = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  return {{"codec", timing.codec},
          {"model", bench.model()},
          {"threads", threads},
          {"parameters", bench.parameters()},
          {"compressed_parameters", timing.parameters},
          {"compressed_tensors", timing.layers},
          {"payload_bytes", timing.payload_bytes},
          {"payload_ratio", timing.payload_ratio()},
          {"encode_ms", timing.encode_ms},
          {"decode_ms", timing.decode_ms},
          {"decode4_ms", timing.decode4_ms},
          {"bound_ms", timing.bound_ms()},
          {"decode_bound_ms", timing.decode_bound_ms},
          {"compared", timing.whole_step ? "encode+decode" : "encode"},
          {"over_bound", timing.over_bound()},
          {"over_bound_goal", number_or_null(goal.over_bound)},
          {"torch_ms", number_or_null(timing.torch_ms)},
          {"torch_ratio", timing.torch_ms ? Json(timing.torch_ratio()) : Json()},
          {"torch_ratio_goal", number_or_null(goal.torch_ratio)}};
}

}  // namespace accordion::bench
