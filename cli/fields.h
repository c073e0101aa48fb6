// An options struct's list of fields as command-line options and as keys of a recipe, a TOML file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

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

// Calls set(name, text) for every `name = value` of the file. Errors name the file.
void read_recipe(const std::string& path,
                 const std::function<void(const std::string& name, const std::string& text)>& set);

// Sets the fields of one or more option structs from a recipe; a name that none of them has is an error.
template <class... Options>
void apply_recipe(const std::string& path, Options&... options) {
  read_recipe(path, [&](const std::string& name, const std::string& text) {
    bool known = false;
    std::vector<std::string> names;
    const auto apply = [&](auto& each) {
      each.fields([&](std::string_view field, auto& value, std::string_view, const Allowed& allowed = {}) {
        names.emplace_back(field);
        if (json_key(field) != json_key(name)) return;
        known = true;
        parse_value(path, field, text, value);
        check_field(path, field, value, allowed);
      });
    };
    (apply(options), ...);
    if (!known) throw UsageError(path + ": " + unknown_name("option", name, names));
  });
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

// The value of `--recipe` among the arguments, or empty: a recipe is read before the command line, which
// overrides it.
std::string recipe_argument(int argc, char** argv);

}  // namespace accordion::cli
