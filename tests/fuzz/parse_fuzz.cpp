// libFuzzer's way in. `--targets` lists the parsers, `--target=NAME` chooses one, `--write-seeds=FOLDER` writes its valid
// inputs there and ends; libFuzzer leaves all three alone.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "fuzz/targets.h"

namespace {

const accordion::fuzz::Target* target = nullptr;

[[noreturn]] void list() {
  for (const auto& each : accordion::fuzz::targets()) std::puts(each.name.c_str());
  std::exit(0);
}

[[noreturn]] void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < target->seeds.size(); ++i)
    std::ofstream(folder / ("seed-" + std::to_string(i)), std::ios::binary) << target->seeds[i];
  std::exit(0);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  std::string_view name, folder;
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (argument == "--targets") list();
    if (argument.starts_with("--target=")) name = argument.substr(9);
    if (argument.starts_with("--write-seeds=")) folder = argument.substr(14);
  }
  for (const auto& each : accordion::fuzz::targets())
    if (each.name == name) target = &each;
  if (!target) {
    std::fputs("fuzz_parse: expected --target=NAME, or --targets for those there are\n", stderr);
    std::exit(2);
  }
  if (!folder.empty()) write_seeds(folder);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  accordion::fuzz::accepts(*target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
