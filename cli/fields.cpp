#include "cli/fields.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "accordion/base/json.h"

namespace accordion::cli {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Takes one value off the front of `text`: a string in either kind of quotes, or a bare word. False where
// there is none.
bool take_value(std::string_view& text, std::string& value) {
  if (text.starts_with('\'') || text.starts_with('"')) {
    const char quote = text[0];
    std::size_t end = 1;
    while (end < text.size() && text[end] != quote) end += quote == '"' && text[end] == '\\' ? 2 : 1;
    if (end >= text.size()) return false;
    const std::string_view whole = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    if (quote == '\'') {
      value = whole.substr(1, whole.size() - 2);
      return true;
    }
    const Json parsed =
        Json::parse(whole, nullptr, /*allow_exceptions=*/false);  // TOML's escapes are JSON's.
    if (!parsed.is_string()) return false;
    value = parsed.get<std::string>();
    return true;
  }
  const std::size_t end = std::min(text.size(), text.find_first_of(" \t\r#,]"));
  value = text.substr(0, end);
  text.remove_prefix(end);
  return !value.empty();
}

// The value of a line `name = value`, a list as its items with commas between them. False for what is
// neither.
bool parse_line_value(std::string_view text, std::string& value) {
  if (!text.starts_with('['))
    return take_value(text, value) && (trimmed(text).empty() || trimmed(text)[0] == '#');
  text = trimmed(text.substr(1));
  while (!text.starts_with(']')) {
    std::string item;
    if (!take_value(text, item)) return false;
    value += (value.empty() ? "" : ",") + item;
    text = trimmed(text);
    if (text.starts_with(','))
      text = trimmed(text.substr(1));
    else if (!text.starts_with(']'))
      return false;
  }
  text = trimmed(text.substr(1));
  return text.empty() || text[0] == '#';
}

// The name of a line `[name]` or `["any name"]`. False for what is neither.
bool parse_section_name(std::string_view line, std::string& name) {
  constexpr std::string_view kBare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  line = trimmed(line.substr(1));
  if (line.starts_with('"') || line.starts_with('\'')) {
    if (!take_value(line, name)) return false;
  } else {
    name = line.substr(0, std::min(line.size(), line.find_first_not_of(kBare)));
    line.remove_prefix(name.size());
  }
  line = trimmed(line);
  if (!line.starts_with(']')) return false;
  line = trimmed(line.substr(1));
  const bool printable = std::none_of(name.begin(), name.end(), [](char c) { return c >= 0 && c < ' '; });
  return !name.empty() && printable && (line.empty() || line[0] == '#');
}

}  // namespace

std::vector<RecipeSection> read_recipe(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    throw UsageError("--recipe " + path + ": cannot be read, expected a TOML file");
  std::vector<RecipeSection> sections = {{.name = "", .where = path, .entries = {}}};
  std::set<std::string> section_names, entry_names;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    const std::string where = path + ":" + std::to_string(++number);
    const std::string_view line = trimmed(text);
    if (line.empty() || line[0] == '#') continue;
    std::string name, value;
    if (line[0] == '[') {
      if (!parse_section_name(line, name))
        throw UsageError(where + ": " + std::string(line) + ", expected `[name]` or `[\"any name\"]`");
      if (!section_names.insert(name).second) throw UsageError(where + ": [" + name + "] is given twice");
      sections.push_back({.name = name, .where = where, .entries = {}});
      entry_names.clear();
      continue;
    }
    const std::size_t equals = line.find('=');
    name = trimmed(line.substr(0, equals));
    if (equals == std::string_view::npos || !parse_line_value(trimmed(line.substr(equals + 1)), value))
      throw UsageError(where + ": " + std::string(line) + ", expected `option = value`");
    if (!entry_names.insert(json_key(name)).second) throw UsageError(where + ": " + name + " is given twice");
    sections.back().entries.push_back({.name = name, .text = value, .where = where});
  }
  return sections;
}

std::string recipe_argument(int argc, char** argv) {
  constexpr std::string_view kFlag = "--recipe";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == kFlag && i + 1 < argc) return argv[i + 1];
    if (argument.starts_with(kFlag) && argument.substr(kFlag.size()).starts_with('='))
      return std::string(argument.substr(kFlag.size() + 1));
  }
  return "";
}

}  // namespace accordion::cli
