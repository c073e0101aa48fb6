#include "cli/fields.h"

#include <cstring>

namespace accordion::cli {

void read_recipe(const std::string& path,
                 const std::function<void(const std::string& name, const std::string& text)>& set) {
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_file(path);
  } catch (const CLI::Error&) {
    throw UsageError("--recipe " + path + ": cannot be read, expected a TOML file");
  }
  for (const CLI::ConfigItem& item : items) {
    if (!item.parents.empty())
      throw UsageError(path + ": section [" + item.parents.front() + "], expected plain `option = value` lines");
    std::string text;
    for (const std::string& input : item.inputs) text += (text.empty() ? "" : ",") + input;
    set(item.name, text);
  }
}

std::string recipe_argument(int argc, char** argv) {
  constexpr std::string_view kFlag = "--recipe";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == kFlag && i + 1 < argc) return argv[i + 1];
    if (argument.starts_with(kFlag) && argument.substr(kFlag.size()).starts_with('='))
      return std::string(argument.substr(kFlag.size() + 1));
  }
  return "";
}

}  // namespace accordion::cli
