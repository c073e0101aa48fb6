#include "fuzz/target.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "accordion/base/error.h"
#include "accordion/base/read_file.h"
#include "accordion/base/temporary_folder.h"

namespace accordion::fuzz {
namespace {

constexpr std::string_view kBetween = "\n~~~~\n";

// In memory, where the machine has such a place: it is written some thousand times a second.
std::filesystem::path fast_place() {
  std::error_code ignored;
  const std::filesystem::path memory = "/dev/shm";
  return std::filesystem::is_directory(memory, ignored) ? memory : std::filesystem::temp_directory_path();
}

}  // namespace

bool accepts(const Target& target, std::string_view input) {
  try {
    target.parse(input);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string together(std::initializer_list<std::string> parts) {
  std::string all;
  for (const std::string& part : parts) all += (&part == parts.begin() ? "" : std::string(kBetween)) + part;
  return all;
}

std::vector<std::string> apart(std::string_view input, std::size_t parts) {
  std::vector<std::string> result;
  while (result.size() + 1 < parts) {
    const std::size_t end = input.find(kBetween);
    result.emplace_back(input.substr(0, end));
    input = end == std::string_view::npos ? "" : input.substr(end + kBetween.size());
  }
  result.emplace_back(input);
  return result;
}

std::filesystem::path scratch(const std::string& name, std::string_view content) {
  static const TemporaryFolder folder(fast_place() / "accordion-fuzz-");
  const std::filesystem::path path = folder.path() / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string source_file(const std::string& path) {
  return read_file(std::filesystem::path(ACCORDION_SOURCE) / path, 1 << 20);
}

void require_same(std::string_view first, std::string_view second, const char* what) {
  if (first == second) return;
  std::fprintf(stderr, "%s is read, written and read again as something else:\n%.*s\n%.*s\n", what,
               static_cast<int>(first.size()), first.data(), static_cast<int>(second.size()), second.data());
  std::abort();
}

}  // namespace accordion::fuzz
