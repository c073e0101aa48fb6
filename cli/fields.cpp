#include "cli/fields.h"

namespace accordion::cli {

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
