#include "accordion/base/json.h"

namespace accordion {
namespace {

// Keys of an object are found one after the other, so that it takes the square of their number to read it.
constexpr std::size_t kMostComparisons = 200'000'000;
constexpr std::size_t kMostShown = 60, kMostComplaint = 200;

std::string shortened(std::string text, std::size_t most) {
  if (text.size() > most) text.replace(text.begin() + static_cast<std::ptrdiff_t>(most), text.end(), "...");
  return text;
}

// Looks at brackets, colons and quotes alone. It agrees with the parser up to the first mistake, where that stops.
void check_extent(std::string_view text, const std::string& what) {
  if (text.size() > kMostJsonBytes)
    throw Error(what + ": " + std::to_string(text.size()) + " bytes of JSON, expected at most " +
                std::to_string(kMostJsonBytes));
  std::vector<std::size_t> keys = {0};  // Of each object that is open.
  std::size_t comparisons = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else
        quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      keys.push_back(0);
      if (keys.size() > kDeepestJson + 1)
        throw Error(what + ": JSON nested more than " + std::to_string(kDeepestJson) + " deep at byte " +
                    std::to_string(i));
    } else if ((c == '}' || c == ']') && keys.size() > 1) {
      keys.pop_back();
    } else if (c == ':' && (comparisons += keys.back()++) > kMostComparisons) {
      throw Error(what + ": JSON objects of too many keys at byte " + std::to_string(i) +
                  ", expected some thousands at most");
    }
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& what) {
  check_extent(text, what);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw Error(what + " is not JSON, or was cut short: " + shortened(error.what(), kMostComplaint));
  }
}

Json parse_json_object(std::string_view text, const std::string& what) {
  Json json = parse_json(text, what);
  if (!json.is_object()) refuse_json(what, json, "an object");
  return json;
}

std::string shown(const Json& json) {
  if (json.is_structured()) return json.is_array() ? "a list" : "an object";  // However deep it is.
  return shortened(json.dump(-1, ' ', false, Json::error_handler_t::replace), kMostShown);
}

void refuse_json(const std::string& what, const Json& json, std::string_view expected) {
  throw Error(what + " is " + shown(json) + ", expected " + std::string(expected));
}

}  // namespace accordion
