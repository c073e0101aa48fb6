// What the folder of a comparison says of itself, in comparison.json: its settings in their order, and where their runs are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace accordion {

inline constexpr const char* kComparisonFile = "comparison.json";

struct ComparisonFolder {
  struct Setting {
    std::string name;
    std::string folder;  // In the comparison's.
  };
  std::string recipe;
  std::vector<std::int64_t> seeds;
  std::vector<Setting> settings;  // The first is what the others are compared to.
  // What the command line said of every setting, name and value: it is in no recipe.
  std::vector<std::pair<std::string, std::string>> options = {};
};

// "seed-3"
std::string seed_folder(std::int64_t seed);

void write_comparison_folder(const std::filesystem::path& folder, const ComparisonFolder& comparison);

// None where there is no such file. Throws Error for one that cannot be read.
std::optional<ComparisonFolder> read_comparison_folder(const std::filesystem::path& folder);

}  // namespace accordion
