#include "accordion/base/options.h"

#include <array>

namespace accordion {

std::string number_text(double value) {
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end};
}

std::string Allowed::text() const {
  if (!names.empty()) return join(names);
  if (std::isinf(low) && std::isinf(high)) return "any number";
  if (std::isinf(high)) return (open_low ? "above " : "at least ") + number_text(low);
  if (std::isinf(low)) return (open_high ? "below " : "at most ") + number_text(high);
  return (open_low ? "(" : "[") + number_text(low) + ", " + number_text(high) + (open_high ? ")" : "]");
}

void check_number(std::string_view owner, std::string_view name, double value, const Allowed& allowed) {
  if (!allowed.holds(value))
    throw UsageError(std::string(owner) + ": " + std::string(name) + "=" + number_text(value) +
                     ", expected " + allowed.text());
}

void check_name(std::string_view owner, std::string_view name, const std::string& value,
                const Allowed& allowed) {
  if (std::find(allowed.names.begin(), allowed.names.end(), value) == allowed.names.end())
    throw UsageError(std::string(owner) + ": " + unknown_name(name, value, allowed.names));
}

}  // namespace accordion
