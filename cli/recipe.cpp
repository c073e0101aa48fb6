#include "cli/recipe.h"

#include <toml++/toml.h>
#include <algorithm>
#include <set>
#include <sstream>

#include "accordion/base/read_file.h"

namespace accordion::cli {
namespace {

// A line is a key's longest way into tables within tables, each of which takes a bit of the stack.
constexpr std::size_t kMostBytes = 1 << 20, kLongestLine = 4096;
constexpr const char* kSection = "expected `[name]` or `[\"any name\"]`";
constexpr const char* kEntry = "expected `option = value`, text in quotes";

// A recipe's text, to quote the line that a mistake is in.
class RecipeFile {
 public:
  explicit RecipeFile(const std::string& path) : path_(path) {
    std::istringstream file(read(path));
    for (std::string line; std::getline(file, line);) {
      text_ += line + "\n";
      if (line.size() > kLongestLine)
        throw UsageError(where(lines_.size() + 1) + ": a line of " + std::to_string(line.size()) +
                         " bytes, expected at most " + std::to_string(kLongestLine));
      const std::size_t begin = std::min(line.size(), line.find_first_not_of(" \t\r"));
      lines_.push_back(line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin));
    }
  }

  const std::string& text() const { return text_; }
  std::string where(std::size_t line) const { return path_ + ":" + std::to_string(line); }

  [[noreturn]] void refuse(std::size_t line, const std::string& why) const {
    throw UsageError(where(line) + ": " + lines_[line - 1] + ", " + why);
  }

  // Something that never ends is found missing at the end of the file; the mistake is in the last line.
  [[noreturn]] void refuse(const toml::parse_error& error) const {
    auto line = std::clamp<std::size_t>(error.source().begin.line, 1, lines_.size());
    while (line > 1 && lines_[line - 1].empty()) --line;
    const std::string& text = lines_[line - 1];
    const bool section = text.starts_with('[');
    if (std::string(error.description()).find("redefine") != std::string::npos) {
      const std::string name =
          section ? text.substr(0, text.find(']') + 1) : text.substr(0, text.find_first_of(" \t="));
      throw UsageError(where(line) + ": " + name + " is given twice");
    }
    refuse(line, std::string(section ? kSection : kEntry) + " (" + std::string(error.description()) + ")");
  }

 private:
  static std::string read(const std::string& path) {
    try {
      return read_file(path, kMostBytes);
    } catch (const Error& error) {
      throw UsageError("--recipe " + path + ": cannot be read, expected a TOML file (" + error.what() + ")");
    }
  }

  std::string path_, text_;
  std::vector<std::string> lines_;
};

// As parse_value reads it, a list as its items with commas between them. Nothing for what no option takes.
std::optional<std::string> value_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* yes = node.as_boolean()) return yes->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) {
    const std::string digits = number_text(number->get());
    // Written as a fraction, it shall not pass for a whole number.
    return digits.find_first_not_of("-0123456789") == std::string::npos ? digits + ".0" : digits;
  }
  const auto* list = node.as_array();
  if (!list) return std::nullopt;
  std::string items;
  for (const toml::node& each : *list) {
    const auto item = each.is_array() ? std::nullopt : value_text(each);
    if (!item) return std::nullopt;
    items += (items.empty() ? "" : ",") + *item;
  }
  return items;
}

// In the order of the file, which the table does not keep.
template <class Visit>
void in_order(const toml::table& table, Visit visit) {
  std::vector<std::pair<const toml::key*, const toml::node*>> all;
  for (auto&& [key, node] : table) all.emplace_back(&key, &node);
  const auto place = [](const auto& each) {
    const toml::source_position at = each.first->source().begin;
    return std::pair(at.line, at.column);
  };
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  for (const auto& [key, node] : all) visit(std::string(key->str()), *node, key->source().begin.line);
}

bool is_section(const toml::node& node) {
  return (node.is_table() && !node.as_table()->is_inline()) || node.is_array_of_tables();
}

RecipeSection read_section(const RecipeFile& file, const toml::table& table, RecipeSection section) {
  std::set<std::string> names;
  in_order(table, [&](const std::string& name, const toml::node& node, std::size_t line) {
    if (is_section(node)) return;
    const auto value = value_text(node);
    if (!value) file.refuse(line, kEntry);
    if (!names.insert(json_key(name)).second)
      throw UsageError(file.where(line) + ": " + name + " is given twice");
    section.entries.push_back({.name = name, .text = *value, .where = file.where(line)});
  });
  return section;
}

}  // namespace

std::vector<RecipeSection> read_recipe(const std::string& path) {
  const RecipeFile file(path);
  toml::table recipe;
  try {
    recipe = toml::parse(file.text());
  } catch (const toml::parse_error& error) {
    file.refuse(error);
  }
  std::vector<RecipeSection> sections = {
      read_section(file, recipe, {.name = "", .where = path, .entries = {}})};
  in_order(recipe, [&](const std::string& name, const toml::node& node, std::size_t line) {
    if (!is_section(node)) return;
    const toml::table* table = node.as_table();
    const bool printable = std::none_of(name.begin(), name.end(), [](char c) { return c >= 0 && c < ' '; });
    if (!table || name.empty() || !printable) file.refuse(line, kSection);
    in_order(*table, [&](const std::string&, const toml::node& each, std::size_t inner) {
      if (is_section(each)) file.refuse(inner, kSection);
    });
    sections.push_back(read_section(file, *table, {.name = name, .where = file.where(line), .entries = {}}));
  });
  return sections;
}

}  // namespace accordion::cli
