// A parser as a fuzzer sees it: bytes in, accepted or refused. targets.cpp says how to add one.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace accordion::fuzz {

struct Target {
  std::string name;
  std::vector<std::string> seeds;  // Small, and valid: all of them are accepted.
  // Throws Error for what it refuses, or nothing; all else is a mistake of ours, and so is memory without bounds.
  std::function<void(std::string_view)> parse;
};

// False if the parser refused with an Error; any other exception comes through.
bool accepts(const Target& target, std::string_view input);

// Input that is several files: their texts, with a line between them that no such file has. Files that are not there are
// empty.
std::string together(std::initializer_list<std::string> parts);
std::vector<std::string> apart(std::string_view input, std::size_t parts);

// Writes a file into a folder of this process, and returns its path.
std::filesystem::path scratch(const std::string& name, std::string_view content);

// A file of the source tree.
std::string source_file(const std::string& path);

// What a parser reads and writes again, it reads as the same: aborts where it does not, for that is no matter of input.
void require_same(std::string_view first, std::string_view second, const char* what);

}  // namespace accordion::fuzz
