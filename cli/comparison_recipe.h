// The recipe of a comparison: options that all settings share, then one section per setting with those that
// differ.
//
//   seeds = [1, 2, 3]
//   workers = 4
//
//   [mild]
//   codec = "powersgd:approx-rank=4"
//
//   ["PowerSGD rank 1"]
//   codec = "powersgd:approx-rank=1"
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/recipe.h"
#include "cli/run_options.h"

namespace accordion::cli {

// What `compare` gives every run itself, and so no recipe can.
bool given_by_compare(std::string_view option);

// The options of `train` that a setting may choose.
struct SettingOptions {
  TrainOptions train;
  LaunchOptions launch;

  void fields(auto&& field) {
    const auto choose = [&](std::string_view name, auto&&... rest) {
      if (!given_by_compare(name)) field(name, rest...);
    };
    train.fields(choose);
    launch.fields(choose);
  }
};

struct Setting {
  std::string name;
  std::string folder;  // The name without what file systems or shells would make of it.
  SettingOptions options;
};

struct ComparisonRecipe {
  std::vector<int> seeds = {1, 2, 3};
  std::vector<Setting> settings;
};

// `overrides` come from the command line and hold for every setting. `check` throws a UsageError for a
// setting that cannot be; it, and every other mistake, then names file, line and setting.
using CheckSetting = std::function<void(const SettingOptions&)>;
ComparisonRecipe read_comparison(const std::string& path, const std::vector<RecipeEntry>& overrides,
                                 const CheckSetting& check);

// "1,2,3". `where` leads the message of a refusal.
std::vector<int> parse_seeds(const std::string& where, std::string_view text);

}  // namespace accordion::cli
