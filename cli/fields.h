// An options struct's list of fields as command-line options.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "accordion/base/options.h"
#include "cli/recipe.h"

namespace accordion::cli {

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
