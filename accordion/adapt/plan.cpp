#include <charconv>

#include "accordion/adapt/schedule.h"
#include "accordion/base/error.h"

namespace accordion {
namespace {

constexpr int kMild = 0;

class Parser {
 public:
  Parser(std::string_view text, int levels) : text_(text), rest_(text), levels_(levels) {}

  Schedule parse() {
    Schedule schedule{.intervals = {}, .otherwise = kMild};
    while (true) {
      item_ = rest_.substr(0, rest_.find(','));
      const bool last = item_.size() == rest_.size();
      const std::string_view name = item_.substr(0, item_.find('@'));
      const bool whole = name.size() == item_.size();
      if (last != whole) refuse();
      const int level = read_level(name);
      if (last) {
        schedule.otherwise = level;
        return schedule;
      }
      const std::string_view span = item_.substr(name.size() + 1);
      const auto dash = span.find('-');
      if (dash == std::string_view::npos) refuse();
      const int begin = read_number(span.substr(0, dash)), end = read_number(span.substr(dash + 1));
      if (end <= begin) refuse();
      schedule.intervals.push_back({begin, end, level});
      rest_ = rest_.substr(item_.size() + 1);
    }
  }

 private:
  [[noreturn]] void refuse() const {
    throw UsageError("plan=" + std::string(text_) + ": \"" + std::string(item_) +
                     "\", expected mild, strong or a level's number, as in mild@0-20 before the last");
  }

  int read_number(std::string_view digits) const {
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number < 0) refuse();
    return number;
  }

  int read_level(std::string_view name) const {
    if (name == "mild") return kMild;
    if (name == "strong") return levels_ - 1;
    const int level = read_number(name);
    if (level >= levels_) refuse();
    return level;
  }

  std::string_view text_, rest_, item_;
  int levels_;
};

}  // namespace

Schedule parse_plan(std::string_view text, int levels) {
  const int strong = levels - 1;
  // The published experiments of 300 epochs: the first 20, and the 10 after the first decay.
  if (text == "critical") return {{{0, 20, kMild}, {150, 160, kMild}}, strong, "plan=critical"};
  if (text == "inverse") return {{{0, 20, strong}, {150, 160, strong}}, kMild, "plan=inverse"};
  return Parser(text, levels).parse();
}

}  // namespace accordion
