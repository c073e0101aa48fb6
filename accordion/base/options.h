// Options are plain structs with one list of their fields:
//
//   struct TopKOptions {
//     double keep = 0.01;
//     void fields(auto&& field) { field("keep", keep, "Fraction of entries sent.", above(0).up_to(1)); }
//   };
//
// That list serves the command line, TOML files, the JSON record (json.h) and `name:option=value` settings.
// Names are written with dashes; JSON keys have underscores instead.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/names.h"

namespace accordion {

// What values a field takes: an interval of numbers, or one name of a list.
struct Allowed {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false, open_high = false;
  std::vector<std::string> names = {};

  Allowed up_to(double value) const { return with_high(value, false); }
  Allowed below(double value) const { return with_high(value, true); }

  bool holds(double value) const {
    return std::isfinite(value) && (open_low ? value > low : value >= low) &&
           (open_high ? value < high : value <= high);
  }
  std::string text() const;  // "(0, 1]", "at least 1"

 private:
  Allowed with_high(double value, bool open) const {
    Allowed result = *this;
    result.high = value;
    result.open_high = open;
    return result;
  }
};

inline Allowed at_least(double value) {
  return {.low = value};
}
inline Allowed above(double value) {
  return {.low = value, .open_low = true};
}
inline Allowed one_of(std::vector<std::string> names) {
  return {.names = std::move(names)};
}

// "0.1" rather than "0.100000".
std::string number_text(double value);

// Throws UsageError naming the option, its value and what is allowed.
void check_number(std::string_view owner, std::string_view name, double value, const Allowed& allowed);
void check_name(std::string_view owner, std::string_view name, const std::string& value,
                const Allowed& allowed);

template <class Value>
void check_field(std::string_view owner, std::string_view name, const Value& value, const Allowed& allowed) {
  if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
    check_number(owner, name, static_cast<double>(value), allowed);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    if (!allowed.names.empty()) check_name(owner, name, value, allowed);
  } else if constexpr (std::is_same_v<Value, std::vector<int>>) {
    for (int item : value) check_number(owner, name, item, allowed);
  }
}

// Checks every field of `options`; `owner` leads the message ("topk", "train").
template <class Options>
void check(std::string_view owner, Options options) {
  options.fields([&](std::string_view name, auto& value, std::string_view, const Allowed& allowed = {}) {
    check_field(owner, name, value, allowed);
  });
}

inline std::string json_key(std::string_view name) {
  std::string key(name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

template <class Options>
std::vector<std::string> field_names(Options options) {
  std::vector<std::string> names = {};
  options.fields([&](std::string_view name, auto&&...) { names.emplace_back(name); });
  return names;
}

// Reads one field's text; a list of numbers is separated by commas. Does not check the range: see check().
template <class Value>
void parse_value(std::string_view owner, std::string_view name, std::string_view text, Value& value) {
  const auto refuse = [&](std::string_view expected) {
    throw UsageError(std::string(owner) + ": " + std::string(name) + "=" + std::string(text) + ", expected " +
                     std::string(expected));
  };
  if constexpr (std::is_same_v<Value, std::string>) {
    value = text;
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (text != "true" && text != "false") refuse("true or false");
    value = text == "true";
  } else if constexpr (std::is_same_v<Value, std::vector<int>>) {
    value.clear();
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view item = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      parse_value(owner, name, item, value.emplace_back());
    }
  } else {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) refuse("a number that fits its type");
    if (error != std::errc() || end != text.data() + text.size())
      refuse(std::is_integral_v<Value> ? "a whole number" : "a number");
  }
}

// Reads "keep=0.01,feedback=false" into `options` and checks the result.
template <class Options>
void parse_fields(std::string_view owner, std::string_view text, Options& options) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    bool known = false;
    options.fields([&](std::string_view name, auto& value, auto&&...) {
      if (name != key) return;
      known = true;
      if (equals == std::string_view::npos)
        throw UsageError(std::string(owner) + ": " + std::string(key) + " has no value, expected " +
                         std::string(key) + "=VALUE");
      parse_value(owner, name, item.substr(equals + 1), value);
    });
    if (!known)
      throw UsageError(std::string(owner) + ": " + unknown_name("option", key, field_names(options)));
  }
  check(owner, options);
}

}  // namespace accordion
