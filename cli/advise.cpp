// accordion advise: whether compressing pays on a machine that a profile describes, and with which method.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "accordion/base/json.h"
#include "accordion/launch/supervise.h"
#include "accordion/perf/advice.h"
#include "cli/advice_output.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

struct AdviseArguments {
  std::string profile, model, workers, bandwidth, format = "text";
  int batch = 0;
  double seconds = 0;
  bool json = false, published = false;
};

struct Asked {
  perf::Range workers, gbps;

  bool single() const { return workers.low == workers.high && gbps.low == gbps.high; }
};

double number(const std::string& option, const std::string& given, std::string_view text,
              const std::string& expected) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError("advise: " + option + "=" + given + ", expected " + expected);
  return value;
}

// "8", "2..1024", and, with a unit at its end, "10Gbps", "0.1..100Gbps", "500Mbps".
perf::Range parse_range(const std::string& option, const std::string& given, bool rate) {
  const std::string expected = rate ? "a rate or a range of rates: 10Gbps, 500Mbps, 0.1..100Gbps"
                                    : "a number or a range of them: 8, 2..1024";
  std::string_view text = given;
  double unit = 1;
  if (rate && text.ends_with("Mbps")) unit = 1e-3;
  if (rate && (text.ends_with("Gbps") || text.ends_with("Mbps"))) text.remove_suffix(4);
  const std::size_t dots = text.find("..");
  const double low = number(option, given, text.substr(0, dots), expected);
  const double high =
      dots == std::string_view::npos ? low : number(option, given, text.substr(dots + 2), expected);
  if (low > high)
    throw UsageError("advise: " + option + "=" + given + " ends below its beginning, expected " + expected);
  return {low * unit, high * unit};
}

Asked asked(const AdviseArguments& arguments, const perf::Profile& profile) {
  const perf::NetworkProfile& network = profile.network;
  Asked result{{static_cast<double>(network.ranks), static_cast<double>(network.ranks)},
               {network.bandwidth_gbps, network.bandwidth_gbps}};
  if (!arguments.workers.empty()) result.workers = parse_range("workers", arguments.workers, false);
  if (!arguments.bandwidth.empty()) result.gbps = parse_range("bandwidth", arguments.bandwidth, true);
  for (const double workers : {result.workers.low, result.workers.high}) {
    check_number("advise", "workers", workers, at_least(2).up_to(perf::kMostWorkers));
    if (workers != static_cast<int>(workers))
      throw UsageError("advise: workers=" + arguments.workers + ", expected whole numbers");
  }
  for (const double gbps : {result.gbps.low, result.gbps.high})
    check_number("advise", "bandwidth", gbps, above(0).up_to(1e5));
  return result;
}

// Doubling, with both ends.
std::vector<int> worker_grid(const perf::Range& range) {
  std::vector<int> grid;
  for (double workers = range.low; workers < range.high; workers *= 2)
    grid.push_back(static_cast<int>(workers));
  grid.push_back(static_cast<int>(range.high));
  return grid;
}

std::vector<double> rate_grid(const perf::Range& range) {
  if (range.low == range.high) return {range.low};
  const double decades = std::log10(range.high / range.low);
  return perf::log_grid(range, std::max(2, static_cast<int>(std::lround(3 * decades)) + 1));
}

AdviceGrid grid_of(const perf::Case& it, const Asked& asked) {
  AdviceGrid grid{worker_grid(asked.workers), rate_grid(asked.gbps), {}};
  grid.points = perf::advise(it, grid.workers, grid.gbps);
  return grid;
}

// Without a profile, this machine's: measured now, and kept where `calibrate` keeps it.
std::string profile_of(const AdviseArguments& arguments) {
  if (!arguments.profile.empty()) return arguments.profile;
  const std::string made = "profile.json";
  if (std::filesystem::exists(made))
    throw UsageError("advise: no --profile, and " + made + " is here already, expected --profile " + made +
                     ", or no such file: then this machine is measured anew");
  std::cerr << "accordion: no --profile: this machine is measured first, into " << made << "\n";
  WorkerSpec calibrate{{std::filesystem::read_symlink("/proc/self/exe"), "calibrate", "--out", made}, {}};
  if (!arguments.model.empty()) calibrate.argv.insert(calibrate.argv.end(), {"--model", arguments.model});
  if (arguments.batch > 0)
    calibrate.argv.insert(calibrate.argv.end(), {"--batch", std::to_string(arguments.batch)});
  if (arguments.seconds > 0)
    calibrate.argv.insert(calibrate.argv.end(), {"--seconds", number_text(arguments.seconds)});
  const Ending ending = supervise({calibrate}, {.out = STDERR_FILENO});
  if (ending.status != 0 || ending.interrupted)
    throw Error("advise: the calibration failed; " + ending.message);
  return made;
}

int run_advise(const AdviseArguments& arguments) {
  const std::string format = arguments.json ? "json" : arguments.format;
  check_name("advise", "format", format, one_of({"text", "json", "csv"}));
  const perf::Profile profile = perf::read_profile(profile_of(arguments));
  const perf::Case it{profile, perf::find_model(profile, arguments.model, arguments.batch),
                      arguments.published};
  const Asked range = asked(arguments, profile);
  const AdviceGrid grid = grid_of(it, range);
  if (format == "text")
    range.single() ? print_advice(it, grid.points.front()) : print_grid(it, grid);
  else if (format == "csv")
    print_csv(grid.points);
  else
    std::cout << (range.single() ? advice_json(it, grid.points.front()) : grid_json(it, grid))
                     .dump(2, ' ', false, Json::error_handler_t::replace)
              << "\n";
  return 0;
}

}  // namespace

Run add_advise(CLI::App& verb) {
  auto arguments = std::make_shared<AdviseArguments>();
  verb.add_option(
      "--profile", arguments->profile,
      "A profile: what `accordion calibrate` writes, or one of profiles/. Without one, it calibrates first.");
  verb.add_option("--seconds", arguments->seconds, "For that calibration, roughly (60).")
      ->check(CLI::Range(1.0, 3600.0));
  verb.add_option("--model", arguments->model, "One of the profile's models; needed where it has several.");
  verb.add_option("--batch", arguments->batch,
                  "Of one worker: one of those the profile has for the model (its first).");
  verb.add_option("--workers", arguments->workers,
                  "How many, or a range: 8, 2..1024 (as the profile was measured).");
  verb.add_option("--bandwidth", arguments->bandwidth,
                  "Of a host's link, or a range: 10Gbps, 500Mbps, 0.1..100Gbps (the profile's).");
  verb.add_option("--format", arguments->format, "text, json or csv.");
  verb.add_flag("--json", arguments->json, "The same as --format json.");
  verb.add_flag("--published", arguments->published,
                "The published formulas, where compressed methods overlap nothing, in place of this "
                "program's own timeline.");
  return [arguments] { return run_advise(*arguments); };
}

}  // namespace accordion::cli
