#include "cli/run_command.h"

#include <algorithm>

#include "accordion/base/json.h"
#include "accordion/run/options.h"
#include "cli/fields.h"
#include "cli/run_options.h"

namespace accordion::cli {
namespace {

// As a shell takes it for one word.
std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("_-./:=,+%@").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string argument(const std::string& name, const Json& value) {
  if (value.is_boolean()) return (value.get<bool>() ? " --" : " --no-") + name;
  if (value.is_string()) return " --" + name + " " + shell_word(value.get<std::string>());
  if (!value.is_array()) return " --" + name + " " + value.dump();
  std::string items;
  for (const Json& item : value) items += (items.empty() ? "" : ",") + item.dump();
  return " --" + name + " " + shell_word(items);
}

}  // namespace

std::string run_command(const Json& config) {
  const auto options = config.find("options");
  // A script that uses the plugin records its tensors; how it was started it does not know.
  if (options == config.end() || !options->is_object() || config.contains("tensors")) return "";
  std::string command = "accordion train";
  const auto add = [&](const std::string& name, const Json& usual, const Json& recorded) {
    if (recorded != usual) command += argument(name, recorded);
  };
  const LaunchOptions launch;
  add("workers", launch.workers, config.value("workers", Json(launch.workers)));
  add("threads", launch.threads, config.value("threads", Json(launch.threads)));
  // A replay takes its controller's options from the run that it repeats.
  const bool replays = options->value("replay", Json("")) != Json("");
  const std::vector<std::string> control = field_names(ControlOptions{});
  TrainOptions{}.fields([&](std::string_view field, auto& usual, auto&&...) {
    const std::string name(field);
    if (replays && std::find(control.begin(), control.end(), name) != control.end()) return;
    if (const auto found = options->find(json_key(field)); found != options->end())
      add(name, Json(usual), *found);
  });
  return command;
}

std::string compare_command(const std::filesystem::path& folder, const ComparisonFolder& comparison) {
  if (comparison.recipe.empty()) return "";
  std::string seeds;
  for (const std::int64_t seed : comparison.seeds) seeds += (seeds.empty() ? "" : ",") + std::to_string(seed);
  std::string command = "accordion compare --recipe " + shell_word(comparison.recipe) + " --out " +
                        shell_word(folder.string()) + " --seeds " + shell_word(seeds);
  // `--nesterov=true` as well as `--samples=200`.
  for (const auto& [name, value] : comparison.options) command += " " + shell_word("--" + name + "=" + value);
  return command;
}

}  // namespace accordion::cli
