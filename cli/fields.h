// An options struct's list of fields as command-line options and as keys of a recipe, a TOML file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "accordion/base/json.h"
#include "accordion/base/options.h"

namespace accordion::cli {

// "0.1", "[150, 250]", "\"cnn\"": as TOML writes it.
template <class Value>
std::string toml_text(const Value& value) {
  return Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Adds `--name` for every field. Values given on the command line are parsed into `options` and keep their
// place: `owner` (the verb) leads the message of a refusal.
template <class Options>
void add_fields(CLI::App& app, const std::string& owner, Options& options) {
  options.fields([&](std::string_view name, auto& value, std::string_view help, const Allowed& allowed = {}) {
    using Value = std::remove_cvref_t<decltype(value)>;
    std::string text(help);
    if constexpr (std::is_same_v<Value, bool>) {
      if (value) text += " (On by default; --no-" + std::string(name) + " turns it off.)";
      app.add_flag("--" + std::string(name) + ",!--no-" + std::string(name), value, text);
    } else {
      if (!allowed.names.empty() || allowed.text() != "any number") text += " (" + allowed.text() + ")";
      std::string shown = toml_text(value);
      std::erase(shown, '"');
      auto* option = app.add_option_function<std::string>(
          "--" + std::string(name),
          [&value, owner, name = std::string(name), allowed](const std::string& given) {
            parse_value(owner, name, given, value);
            check_field(owner, name, value, allowed);
          },
          text);
      option->take_last();  // Given twice, the later one holds, as in every shell script that adds to "$@".
      option->type_name(shown.empty() || shown == "[]" ? "VALUE" : "[" + shown + "]");
    }
  });
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

// The fields of `options` that were given on the command line, `owner`'s.
template <class Options>
std::vector<RecipeEntry> given_fields(const CLI::App& verb, const std::string& owner,
                                      const Options& options) {
  std::vector<RecipeEntry> given;
  for (const std::string& name : field_names(options))
    if (const CLI::Option* option = verb.get_option("--" + name); option->count() > 0)
      given.push_back({.name = name, .text = option->results().back(), .where = owner});
  return given;
}

// The value of `--recipe` among the arguments, or empty: a recipe is read before the command line, which
// overrides it.
std::string recipe_argument(int argc, char** argv);

}  // namespace accordion::cli
