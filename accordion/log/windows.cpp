#include "accordion/log/windows.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/read_file.h"
#include "accordion/log/read_run.h"
#include "accordion/log/record_json.h"
#include "accordion/log/run_folder.h"

namespace accordion {
namespace {

constexpr std::size_t kMostTableBytes = 256 << 20;

[[noreturn]] void refuse(const std::filesystem::path& file, std::size_t line, const std::string& what) {
  throw UsageError(file.string() + ", line " + std::to_string(line) + ": " + what);
}

// A controller compares a window with those before it.
void check_whole(const std::vector<RecordedWindow>& windows, const std::filesystem::path& file) {
  if (windows.empty()) throw UsageError(file.string() + " holds no epoch");
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (windows[w].window != static_cast<int>(w))
      throw UsageError(file.string() + ": epoch " + std::to_string(windows[w].window) + " where epoch " +
                       std::to_string(w) + " was expected");
    if (windows[w].layers.size() != windows[0].layers.size())
      throw UsageError(file.string() + ": epoch " + std::to_string(w) + " has " +
                       std::to_string(windows[w].layers.size()) + " layers, expected " +
                       std::to_string(windows[0].layers.size()));
  }
}

std::string table_text(const std::filesystem::path& file) {
  try {
    return read_file(file, kMostTableBytes);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

template <class Number>
Number parse(std::string_view text, const std::filesystem::path& file, std::size_t line) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    refuse(file, line, "\"" + std::string(text) + "\", expected a number");
  return value;
}

}  // namespace

std::vector<RecordedWindow> read_run_windows(const std::filesystem::path& folder) {
  const Run run = read_run(folder);
  int window_steps = 0;
  if (const auto options = run.config.find("options"); options != run.config.end() && options->is_object())
    read_optional(*options, "window", window_steps);
  const bool short_windows = window_steps > 0;
  std::vector<RecordedWindow> result;
  for (const EpochRecord& epoch : epoch_records(run.epochs, (folder / kEpochsFile).string())) {
    std::vector<WindowRecord> windows = epoch.windows;
    if (!short_windows)
      windows = {{epoch.epoch, epoch.schedule_lr.value_or(epoch.lr), epoch.steps, epoch.layers}};
    for (WindowRecord& window : windows)
      result.push_back({std::move(window), epoch.global_batch, epoch.batch_reason.value_or("")});
  }
  check_whole(result, folder);
  return result;
}

std::vector<RecordedWindow> read_csv_windows(const std::filesystem::path& file) {
  std::istringstream in(table_text(file));
  constexpr std::string_view kHeader = "epoch,layer,norm,lr";
  std::vector<RecordedWindow> windows;
  std::set<std::string> names;  // Of the first epoch's layers.
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (number == 1) {
      if (line != kHeader) refuse(file, 1, "\"" + line + "\", expected the header " + std::string(kHeader));
      continue;
    }
    if (line.empty()) continue;
    // A layer's name may hold commas; the other three columns do not.
    const std::size_t first = line.find(','), last = line.rfind(','),
                      third = last == 0 ? last : line.rfind(',', last - 1);
    if (first == std::string::npos || third <= first || third == std::string::npos)
      refuse(file, number, "\"" + line + "\", expected four columns: " + std::string(kHeader));
    const std::string_view row = line;
    const int epoch = parse<int>(row.substr(0, first), file, number);
    const std::string layer(row.substr(first + 1, third - first - 1));
    const double norm = parse<double>(row.substr(third + 1, last - third - 1), file, number);
    const double lr = parse<double>(row.substr(last + 1), file, number);
    if (windows.empty() || windows.back().window != epoch)
      windows.push_back({{.window = epoch, .lr = lr, .steps = 1, .layers = {}}, 0, ""});
    std::vector<LayerRecord>& current = windows.back().layers;
    if (windows.back().lr != lr) refuse(file, number, "another learning rate than the epoch's rows above");
    if (windows.size() == 1) {
      if (!names.insert(layer).second) refuse(file, number, "layer " + layer + " twice");
    } else if (const auto& first = windows[0].layers;
               current.size() >= first.size() || first[current.size()].name != layer) {
      refuse(file, number, "layer " + layer + ", expected the layers of the first epoch in their order");
    }
    current.push_back({.name = layer, .norm = norm});
  }
  check_whole(windows, file);
  return windows;
}

}  // namespace accordion
