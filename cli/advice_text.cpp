// Advice as people read it.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "accordion/perf/verdict.h"
#include "accordion/report/aligned.h"
#include "cli/advice_output.h"

namespace accordion::cli {
namespace {

constexpr const char* kOnlyTime =
    "Only time is compared: what a method does to accuracy is not in a profile.";
constexpr std::size_t kMostColumns = 10;

std::string fixed(double value, const char* format = "%.1f") {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string milliseconds(double seconds) {
  return fixed(seconds * 1e3, seconds < 0.01 ? "%.2f" : "%.1f");
}

void print_lines(std::vector<Cells> lines) {
  align(lines);
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) std::printf("%s%s", i == 0 ? "" : "  ", line[i].c_str());
    std::printf("\n");
  }
}

// "below 9.66", "1 to 20", "below 1, above 20": Gbit/s at which it beats plain DDP.
std::string winning_rates(const perf::MethodAdvice& method) {
  if (method.break_even.empty()) return method.wins_on_slowest ? "always" : "never";
  std::string text;
  const std::size_t turns = method.break_even.size();
  for (std::size_t i = method.wins_on_slowest ? 0 : 1; i <= turns; i += 2) {
    const std::string from = i == 0 ? "" : fixed(method.break_even[i - 1], "%.3g");
    const std::string to = i == turns ? "" : fixed(method.break_even[i], "%.3g");
    text += (text.empty() ? "" : ", ") + (from.empty() ? "below " + to
                                          : to.empty() ? "above " + from
                                                       : from + " to " + to);
  }
  return text;
}

std::string or_dash(const std::optional<int>& workers) {
  return workers ? std::to_string(*workers) : "-";
}

std::string near_linear(const perf::Advice& advice) {
  const std::string within =
      " (a step within " + fixed(100 * (perf::kNearLinear - 1), "%.0f") + " % of one without communication)";
  if (!advice.needed_ratio) return "No ratio of compression is enough for near-linear scaling" + within;
  if (*advice.needed_ratio <= 1) return "Scaling is near-linear as it is" + within;
  return "Near-linear scaling" + within + " needs gradients " + fixed(*advice.needed_ratio, "%.3g") +
         " times smaller, at no cost";
}

std::string heading(const perf::Case& it, const perf::Profile& profile) {
  return (profile.machine.empty() ? "" : profile.machine + ".\n") + it.model.model + ", batch " +
         std::to_string(it.model.batch) +
         (it.published ? ", published model: compressed methods overlap nothing" : "");
}

std::string regime_text(const perf::Regime& regime) {
  return fixed(regime.from_gbps, "%.3g") + " to " + perf::spoken_gbps(regime.to_gbps) + ": " +
         perf::spoken(regime.best);
}

// The profile's bandwidth, or what is next to it of those asked for.
double spoken_of(const perf::Case& it, const AdviceGrid& grid) {
  return std::clamp(it.profile.network.bandwidth_gbps, grid.range().low, grid.range().high);
}

// For each number of workers: which method is best where, and the verdict.
void print_verdicts(const perf::Case& it, const AdviceGrid& grid) {
  const double spoken[] = {spoken_of(it, grid)};
  for (const perf::Advice& advice : perf::advise(it, grid.workers, spoken)) {
    std::string text;
    if (grid.gbps.size() > 1)
      for (const perf::Regime& regime : perf::regimes(it, advice.workers, grid.range()))
        text += (text.empty() ? "" : "; ") + regime_text(regime);
    std::printf("%d workers: %s%s\n  %s.\n", advice.workers, text.empty() ? "" : (text + ".\n  ").c_str(),
                advice.verdict.c_str(), near_linear(advice).c_str());
  }
}

// What does not fit into a line is left out; the ends stay.
template <class T>
std::vector<std::size_t> columns_of(const std::vector<T>& values) {
  std::vector<std::size_t> columns;
  const std::size_t count = values.size(),
                    stride = count <= kMostColumns ? 1 : (count + kMostColumns - 2) / (kMostColumns - 1);
  for (std::size_t i = 0; i < count; i += stride) columns.push_back(i);
  if (columns.back() + 1 < count) columns.push_back(count - 1);
  return columns;
}

// What there is to say of each method, whichever is the best.
void print_methods(const AdviceGrid& grid) {
  const std::size_t methods = grid.points.front().methods.size();
  if (methods == 1) return;
  const auto at = [&](std::size_t workers, std::size_t rate,
                      std::size_t method) -> const perf::MethodAdvice& {
    return grid.points[workers * grid.gbps.size() + rate].methods[method];
  };
  std::vector<Cells> rates(methods), workers(methods);
  rates[0] = {"wins at Gbit/s, of workers"};
  workers[0] = {"up to workers, at Gbit/s"};
  for (const std::size_t w : columns_of(grid.workers)) rates[0].push_back(std::to_string(grid.workers[w]));
  for (const std::size_t g : columns_of(grid.gbps)) workers[0].push_back(fixed(grid.gbps[g], "%.3g"));
  for (const char* title : {"memory for workers", "bytes/parameter"}) workers[0].emplace_back(title);
  for (std::size_t m = 1; m < methods; ++m) {
    const perf::MethodAdvice& any = at(0, 0, m);
    rates[m] = workers[m] = {any.predicted.method};
    for (const std::size_t w : columns_of(grid.workers)) rates[m].push_back(winning_rates(at(w, 0, m)));
    for (const std::size_t g : columns_of(grid.gbps)) workers[m].push_back(or_dash(at(0, g, m).wins_up_to));
    workers[m].push_back(or_dash(any.fits_up_to));
    workers[m].push_back(fixed(any.extra_memory_bytes_per_parameter, "%.3g"));
  }
  print_lines(std::move(rates));
  std::printf("\n");
  print_lines(std::move(workers));
}

}  // namespace

void print_advice(const perf::Case& it, const perf::Advice& advice) {
  std::printf("%s, %d workers, %s. A step, in ms:\n\n", heading(it, it.profile).c_str(), advice.workers,
              perf::spoken_gbps(advice.gbps).c_str());
  std::vector<Cells> lines = {{"method", "step", "backward", "encoding", "communication", "decoding", "rest",
                               "wins at Gbit/s", "up to workers", "memory for workers", "bytes/parameter"}};
  for (const perf::MethodAdvice& method : advice.methods) {
    const perf::Prediction& step = method.predicted;
    const bool plain = step.method == perf::kPlain;
    lines.push_back({plain ? "none (plain DDP)" : step.method, milliseconds(step.step),
                     milliseconds(step.backward), milliseconds(step.encoding),
                     milliseconds(step.communication), milliseconds(step.decoding), milliseconds(step.rest),
                     plain ? "" : winning_rates(method), plain ? "" : or_dash(method.wins_up_to),
                     plain ? "" : or_dash(method.fits_up_to),
                     plain ? "" : fixed(method.extra_memory_bytes_per_parameter, "%.3g")});
  }
  print_lines(std::move(lines));
  std::printf("\n%s\n%s.\n%s\n", advice.verdict.c_str(), near_linear(advice).c_str(), kOnlyTime);
}

void print_grid(const perf::Case& it, const AdviceGrid& grid) {
  std::printf("%s. A step of plain DDP and of the best method, in ms:\n\n", heading(it, it.profile).c_str());
  std::vector<Cells> lines = {{"workers", "Gbit/s", "plain", "best", "method", "saves"}};
  for (const perf::Advice& advice : grid.points) {
    const perf::Prediction &plain = advice.plain().predicted, &best = advice.best().predicted;
    lines.push_back({std::to_string(advice.workers), fixed(advice.gbps, "%.3g"), milliseconds(plain.step),
                     milliseconds(best.step), perf::spoken(best.method),
                     fixed(100 * (1 - best.step / plain.step), "%.0f %%")});
  }
  print_lines(std::move(lines));
  std::printf("\n");
  print_methods(grid);
  std::printf("\n");
  print_verdicts(it, grid);
  std::printf("%s\n", kOnlyTime);
}

}  // namespace accordion::cli
