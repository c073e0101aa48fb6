// accordion advise: whether compressing pays on a machine that a profile describes, and with which method.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "accordion/base/json.h"
#include "accordion/launch/supervise.h"
#include "accordion/perf/advice.h"
#include "accordion/perf/verdict.h"
#include "accordion/report/aligned.h"
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

std::string fixed(double value, const char* format = "%.1f") {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string milliseconds(double seconds) {
  return fixed(seconds * 1e3, seconds < 0.01 ? "%.2f" : "%.1f");
}

Json prediction_json(const perf::Prediction& it) {
  return {{"method", it.method},
          {"step_ms", it.step * 1e3},
          {"backward_ms", it.backward * 1e3},
          {"encoding_ms", it.encoding * 1e3},
          {"communication_ms", it.communication * 1e3},
          {"decoding_ms", it.decoding * 1e3},
          {"rest_ms", it.rest * 1e3}};
}

Json advice_json(const perf::Case& it, const perf::Advice& advice) {
  Json json = {{"model", it.model.model},
               {"batch", it.model.batch},
               {"workers", advice.workers},
               {"bandwidth_gbps", advice.gbps},
               {"published", it.published},
               {"verdict", advice.verdict},
               {"best", advice.best().predicted.method}};
  json["near_linear_ratio"] = advice.needed_ratio ? Json(*advice.needed_ratio) : Json();
  for (const perf::MethodAdvice& method : advice.methods) {
    Json row = prediction_json(method.predicted);
    if (method.predicted.method != perf::kPlain) {
      row["wins"] = method.wins;
      row["break_even_gbps"] = method.break_even;
      row["wins_on_slowest"] = method.wins_on_slowest;
      row["wins_up_to_workers"] = method.wins_up_to ? Json(*method.wins_up_to) : Json();
      row["gathered_bytes"] = method.gathered_bytes;
      row["fits_up_to_workers"] = method.fits_up_to ? Json(*method.fits_up_to) : Json();
      row["extra_memory_bytes_per_parameter"] = method.extra_memory_bytes_per_parameter;
    }
    json["rows"].push_back(row);
  }
  return json;
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

std::string heading(const perf::Case& it, const perf::Profile& profile) {
  return (profile.machine.empty() ? "" : profile.machine + ".\n") + it.model.model + ", batch " +
         std::to_string(it.model.batch) +
         (it.published ? ", published model: compressed methods overlap nothing" : "");
}

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
                     plain ? "" : winning_rates(method),
                     plain               ? ""
                     : method.wins_up_to ? std::to_string(*method.wins_up_to)
                                         : "-",
                     plain               ? ""
                     : method.fits_up_to ? std::to_string(*method.fits_up_to)
                                         : "-",
                     plain ? "" : fixed(method.extra_memory_bytes_per_parameter, "%.3g")});
  }
  print_lines(std::move(lines));
  std::printf("\n%s\n", advice.verdict.c_str());
  if (!advice.needed_ratio)
    std::printf(
        "No ratio of compression is enough for near-linear scaling (a step within %.0f %% of one without "
        "communication).\n",
        100 * (perf::kNearLinear - 1));
  else if (*advice.needed_ratio <= 1)
    std::printf("Scaling is near-linear as it is (a step within %.0f %% of one without communication).\n",
                100 * (perf::kNearLinear - 1));
  else
    std::printf(
        "Near-linear scaling (a step within %.0f %% of one without communication) needs gradients %.3g times "
        "smaller, at no cost.\n",
        100 * (perf::kNearLinear - 1), *advice.needed_ratio);
  std::printf("Only time is compared: what a method does to accuracy is not in a profile.\n");
}

struct Point {
  int workers;
  double gbps;
  std::vector<perf::Prediction> methods = {};
  std::size_t best_method = 0;

  const perf::Prediction& best() const { return methods[best_method]; }
};

std::vector<Point> grid_of(const perf::Case& it, const Asked& asked) {
  std::vector<Point> points;
  for (const int workers : worker_grid(asked.workers))
    for (const double gbps : rate_grid(asked.gbps)) {
      Point& point = points.emplace_back(Point{workers, gbps});
      std::vector<double> steps;
      for (const std::string& method : perf::methods(it))
        steps.push_back(point.methods.emplace_back(perf::predict(it, method, workers, gbps)).step);
      point.best_method = perf::best_of(it, steps, workers);
    }
  return points;
}

std::string regime_text(const perf::Regime& regime) {
  return fixed(regime.from_gbps, "%.3g") + " to " + perf::spoken_gbps(regime.to_gbps) + ": " +
         perf::spoken(regime.best);
}

void print_grid(const perf::Case& it, const Asked& asked, const std::vector<Point>& points) {
  std::printf("%s. A step of plain DDP and of the best method, in ms:\n\n", heading(it, it.profile).c_str());
  std::vector<Cells> lines = {{"workers", "Gbit/s", "plain", "best", "method", "saves"}};
  for (const Point& point : points) {
    const perf::Prediction &plain = point.methods.front(), &best = point.best();
    lines.push_back({std::to_string(point.workers), fixed(point.gbps, "%.3g"), milliseconds(plain.step),
                     milliseconds(best.step), perf::spoken(best.method),
                     fixed(100 * (1 - best.step / plain.step), "%.0f %%")});
  }
  print_lines(std::move(lines));
  std::printf("\n");
  for (const int workers : worker_grid(asked.workers)) {
    std::string text;
    for (const perf::Regime& regime : perf::regimes(it, workers, asked.gbps))
      text += (text.empty() ? "" : "; ") + regime_text(regime);
    std::printf("%d workers: %s.\n", workers, text.c_str());
  }
  std::printf("Only time is compared: what a method does to accuracy is not in a profile.\n");
}

Json rows_of(const Point& point) {
  Json rows = Json::array();
  for (const perf::Prediction& method : point.methods) rows.push_back(prediction_json(method));
  return rows;
}

Json grid_json(const perf::Case& it, const Asked& asked, const std::vector<Point>& points) {
  Json json = {{"model", it.model.model}, {"batch", it.model.batch}, {"published", it.published}};
  for (const Point& point : points) {
    Json entry = {{"workers", point.workers}, {"bandwidth_gbps", point.gbps}, {"best", point.best().method}};
    entry["rows"] = rows_of(point);
    json["points"].push_back(entry);
  }
  for (const int workers : worker_grid(asked.workers))
    for (const perf::Regime& regime : perf::regimes(it, workers, asked.gbps))
      json["regimes"].push_back({{"workers", workers},
                                 {"from_gbps", regime.from_gbps},
                                 {"to_gbps", regime.to_gbps},
                                 {"best", regime.best}});
  return json;
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return '"' + value.get<std::string>() + '"';
  if (value.is_number_float()) return fixed(value.get<double>(), "%.9g");
  if (!value.is_array()) return value.dump();
  std::string cells;
  for (const Json& each : value) cells += (cells.empty() ? "" : ";") + csv_cell(each);
  return cells;
}

// The rows of the JSON, flat. Plain DDP's, the first, has fewer keys than the others.
void print_csv(int workers, double gbps, const Json& rows, bool heading) {
  const Json& widest = rows.back();
  if (heading) {
    std::printf("workers,bandwidth_gbps");
    for (const auto& [key, value] : widest.items()) std::printf(",%s", key.c_str());
    std::printf("\n");
  }
  for (const Json& row : rows) {
    std::printf("%d,%.6g", workers, gbps);
    for (const auto& [key, value] : widest.items())
      std::printf(",%s", csv_cell(row.value(key, Json())).c_str());
    std::printf("\n");
  }
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
  if (range.single()) {
    const perf::Advice advice = perf::advise(it, static_cast<int>(range.workers.low), range.gbps.low);
    if (format == "text") return print_advice(it, advice), 0;
    const Json json = advice_json(it, advice);
    if (format == "csv") return print_csv(advice.workers, advice.gbps, json["rows"], true), 0;
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return 0;
  }
  const std::vector<Point> points = grid_of(it, range);
  if (format == "text") return print_grid(it, range, points), 0;
  if (format == "csv") {
    for (const Point& point : points)
      print_csv(point.workers, point.gbps, rows_of(point), &point == &points.front());
    return 0;
  }
  std::cout << grid_json(it, range, points).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
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
