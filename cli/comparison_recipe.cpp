#include "cli/comparison_recipe.h"

#include <algorithm>
#include <array>
#include <map>

namespace accordion::cli {
namespace {

constexpr std::array<std::string_view, 4> kGiven = {"seed", "out", "overwrite", "quiet"};

void set_option(const RecipeEntry& entry, SettingOptions& options) {
  if (entry.name == "seed")
    throw UsageError(entry.where + ": seed, expected `seeds = [1, 2, 3]` before the first [setting]");
  if (entry.name == "seeds")
    throw UsageError(entry.where + ": seeds, expected before the first [setting]: all settings share them");
  if (given_by_compare(entry.name))
    throw UsageError(entry.where + ": " + entry.name +
                     " is not an option of a setting: each run has its own " +
                     "folder below the --out of accordion compare");
  set_field(entry, options);
}

std::string folder_name(std::string_view name) {
  std::string folder;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    folder += plain && !(folder.empty() && (c == '.' || c == '-')) ? c : '_';
  }
  return folder;
}

void check_setting(const RecipeSection& section, const Setting& setting, const CheckSetting& check) {
  try {
    check(setting.options);
  } catch (const UsageError& error) {
    throw UsageError(section.where + ": [" + section.name + "]: " + error.what());
  }
}

}  // namespace

bool given_by_compare(std::string_view option) {
  return std::find(kGiven.begin(), kGiven.end(), option) != kGiven.end();
}

std::vector<int> parse_seeds(const std::string& where, std::string_view text) {
  std::vector<int> seeds;
  parse_value(where, "seeds", text, seeds);
  check_field(where, "seeds", seeds, at_least(0));
  if (seeds.empty()) throw UsageError(where + ": no seeds, expected at least one");
  for (auto seed = seeds.begin(); seed != seeds.end(); ++seed)
    if (std::find(seeds.begin(), seed, *seed) != seed)
      throw UsageError(where + ": seeds=" + std::string(text) + ", but " + std::to_string(*seed) +
                       " twice would be the same run twice");
  return seeds;
}

ComparisonRecipe read_comparison(const std::string& path, const std::vector<RecipeEntry>& overrides,
                                 const CheckSetting& check) {
  const std::vector<RecipeSection> sections = read_recipe(path);
  if (sections.size() < 2)
    throw UsageError(path + ": no settings to compare, expected a [name] section for each");
  ComparisonRecipe recipe;
  SettingOptions shared;
  for (const RecipeEntry& entry : sections[0].entries)
    if (entry.name == "seeds")
      recipe.seeds = parse_seeds(entry.where, entry.text);
    else
      set_option(entry, shared);

  std::map<std::string, std::string> taken;  // Folders, and the settings that have them.
  for (std::size_t i = 1; i < sections.size(); ++i) {
    const RecipeSection& section = sections[i];
    Setting setting{.name = section.name, .folder = folder_name(section.name), .options = shared};
    for (const RecipeEntry& entry : section.entries) set_option(entry, setting.options);
    for (const RecipeEntry& entry : overrides) set_option(entry, setting.options);
    if (const auto [other, is_new] = taken.emplace(setting.folder, setting.name); !is_new)
      throw UsageError(section.where + ": [" + section.name + "] would share the folder " + setting.folder +
                       " with [" + other->second + "]; rename one");
    check_setting(section, setting, check);
    recipe.settings.push_back(std::move(setting));
  }
  return recipe;
}

}  // namespace accordion::cli
