#include "accordion/log/progress_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace accordion {
namespace {

constexpr int kFewestCells = 5, kMostCells = 30;

std::string formatted(const char* format, double value) {
  std::array<char, 64> text;
  const int size = std::snprintf(text.data(), text.size(), format, value);
  return {text.data(), static_cast<std::size_t>(std::clamp(size, 0, 63))};
}

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string place_text(int epoch, int epochs) {
  return "epoch " + std::to_string(epoch) + "/" + std::to_string(epochs);
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const auto whole = static_cast<long>(std::lround(seconds));
  const long hours = whole / 3600, minutes = whole / 60 % 60;
  std::array<char, 32> text;
  if (hours > 0)
    std::snprintf(text.data(), text.size(), "%ld:%02ld:%02ld", hours, minutes, whole % 60);
  else
    std::snprintf(text.data(), text.size(), "%ld:%02ld", minutes, whole % 60);
  return text.data();
}

std::string quantity_text(double value) {
  if (!std::isfinite(value)) return "?";
  static constexpr std::array kUnits = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  // 999.5 would print as "1000".
  for (; std::abs(value) >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  const double size = std::abs(value);
  return formatted(size < 9.995 ? "%.2f" : size < 99.95 ? "%.1f" : "%.0f", value) + kUnits[unit];
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array kUnits = {"kB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return formatted("%.1f ", value) + kUnits[unit];
}

std::string loss_text(double loss) {
  return formatted(std::abs(loss) < 1000 ? "%.3f" : "%.3g", loss);
}

std::string bar_text(double fraction, int cells, bool utf8) {
  const double inside = fraction > 0 ? std::min(fraction, 1.0) : 0;
  const int halves = static_cast<int>(inside * 2 * cells);
  const int full = halves / 2, half = halves % 2;
  return repeated(utf8 ? "━" : "=", full) + repeated(utf8 ? "╸" : ">", half) +
         repeated(utf8 ? "─" : ".", cells - full - half);
}

int columns_of(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string clipped(std::string_view text, int columns) {
  std::size_t end = 0;
  for (; end < text.size(); ++end)
    if ((text[end] & 0xC0) != 0x80 && columns-- <= 0) break;
  return std::string(text.substr(0, end));
}

std::string progress_line(const ProgressState& state, int width, bool utf8) {
  const double fraction =
      state.total > 0
          ? std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0)
          : 0;
  const std::string before = place_text(state.epoch, state.epochs) + " ";
  // Rounded down: 100 % means done. Two places, so that the line does not jump.
  std::string after = formatted("%2.0f %%", std::floor(fraction * 100));
  if (state.rate > 0) after += "  " + quantity_text(state.rate) + " " + state.unit + "/s";
  after += "  loss " + loss_text(state.loss);
  if (state.rate > 0) after += "  " + duration_text(state.seconds_left) + " left";
  // A narrow terminal loses the bar first, then the end of the line.
  const int room = width - columns_of(before) - columns_of(after) - 1;
  std::string bar;
  if (room >= kFewestCells) bar = bar_text(fraction, std::min(room, kMostCells), utf8) + " ";
  return clipped(before + bar + after, width);
}

std::string result_text(const EpochRecord& record, int digits) {
  const std::string format = "%." + std::to_string(digits) + "f";
  if (record.test_accuracy)
    return "accuracy " + formatted((format + " %%").c_str(), *record.test_accuracy * 100);
  if (record.test_perplexity) return "perplexity " + formatted(format.c_str(), *record.test_perplexity);
  return "";
}

std::string epoch_line(const EpochRecord& record, int epoch, int epochs, std::int64_t items,
                       std::string_view unit) {
  std::string line = place_text(epoch, epochs) + ": loss " + loss_text(record.train_loss);
  if (const std::string result = result_text(record, 1); !result.empty()) line += ", test " + result;
  if (record.seconds > 0 && items > 0)
    line +=
        ", " + quantity_text(static_cast<double>(items) / record.seconds) + " " + std::string(unit) + "/s";
  line += ", " + (record.seconds < 60 ? formatted("%.1f s", record.seconds) : duration_text(record.seconds));
  return line + ", " + bytes_text(record.wire_bytes) + " sent";
}

}  // namespace accordion
