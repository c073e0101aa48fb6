// A text as numbers: each token is its word's place in the vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace accordion {

// Two words with a meaning of their own: one that the vocabulary lacks, and the end of a line.
inline constexpr std::string_view kUnknownWord = "<unk>", kEndOfLine = "<eos>";

struct TextSet {
  std::vector<std::string> vocabulary;
  std::vector<std::int32_t> train, test;
};

}  // namespace accordion
