#include "accordion/report/comparison_folder.h"

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/read_file.h"
#include "accordion/log/write_file.h"

namespace accordion {

namespace fs = std::filesystem;

std::string seed_folder(std::int64_t seed) {
  return "seed-" + std::to_string(seed);
}

void write_comparison_folder(const fs::path& folder, const ComparisonFolder& comparison) {
  Json settings = Json::array();
  for (const ComparisonFolder::Setting& setting : comparison.settings)
    settings.push_back({{"name", setting.name}, {"folder", setting.folder}});
  Json json = {{"recipe", comparison.recipe}, {"seeds", comparison.seeds}, {"settings", settings}};
  json["options"] = Json::object();
  for (const auto& [name, value] : comparison.options) json["options"][name] = value;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder.string() + ": cannot create the folder: " + error.message());
  write_whole(folder / kComparisonFile, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<ComparisonFolder> read_comparison_folder(const fs::path& folder) {
  const fs::path path = folder / kComparisonFile;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return std::nullopt;
  const Json json = parse_json_object(read_file(path, kMostJsonBytes), path.string());
  try {
    ComparisonFolder comparison{.recipe = json.value("recipe", ""),
                                .seeds = json.at("seeds").get<std::vector<std::int64_t>>(),
                                .settings = {}};
    for (const Json& setting : json.at("settings")) {
      const std::string name = setting.at("folder");
      // One folder's name: a file that was tampered with must not lead elsewhere.
      if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
        throw Error(path.string() + ": folder \"" + name +
                    "\", expected the name of a folder beside this file");
      comparison.settings.push_back({.name = setting.at("name"), .folder = name});
    }
    // Older versions did not note them.
    if (const auto options = json.find("options"); options != json.end())
      for (const auto& [name, value] : options->items())
        comparison.options.emplace_back(name, value.get<std::string>());
    return comparison;
  } catch (const Json::exception& error) {
    throw Error(path.string() + ": " + error.what() + ", expected what `accordion compare` writes");
  }
}

}  // namespace accordion
