// An options struct's list of fields as keys of a recipe, a TOML file. No torch here: tests/fuzz reads recipes too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "accordion/base/json.h"
#include "accordion/base/options.h"

namespace accordion::cli {

// "0.1", "[150, 250]", "\"cnn\"": as TOML writes it.
template <class Value>
std::string toml_text(const Value& value) {
  return Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One `name = value` of a recipe; `where` is "demo.toml:3".
struct RecipeEntry {
  std::string name, text, where;
};

// The lines below a `[name]`, or, without a name, those before the first one.
struct RecipeSection {
  std::string name, where;
  std::vector<RecipeEntry> entries;
};

// The first section is the one without a name. Errors name file and line.
std::vector<RecipeSection> read_recipe(const std::string& path);

// Sets the field of that name in one or more option structs; a name that none of them has is an error.
template <class... Options>
void set_field(const RecipeEntry& entry, Options&... options) {
  bool known = false;
  std::vector<std::string> names;
  const auto set = [&](auto& each) {
    each.fields([&](std::string_view field, auto& value, std::string_view, const Allowed& allowed = {}) {
      names.emplace_back(field);
      if (json_key(field) != json_key(entry.name)) return;
      known = true;
      parse_value(entry.where, field, entry.text, value);
      check_field(entry.where, field, value, allowed);
    });
  };
  (set(options), ...);
  if (!known) throw UsageError(entry.where + ": " + unknown_name("option", entry.name, names));
}

// The recipe of one run: it has no sections.
template <class... Options>
void apply_recipe(const std::string& path, Options&... options) {
  const std::vector<RecipeSection> sections = read_recipe(path);
  if (sections.size() > 1)
    throw UsageError(sections[1].where + ": [" + sections[1].name +
                     "] begins a setting of a comparison, expected the options of one run; "
                     "`accordion compare --recipe` takes this file");
  for (const RecipeEntry& entry : sections[0].entries) set_field(entry, options...);
}

// The recipe that apply_recipe reads back.
template <class Options>
std::string recipe_text(Options options) {
  std::string text;
  options.fields([&](std::string_view name, auto& value, auto&&...) {
    text += std::string(name) + " = " + toml_text(value) + "\n";
  });
  return text;
}

}  // namespace accordion::cli
