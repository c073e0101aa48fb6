// A text as numbers: each token is its word's place in the vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace accordion {

class Hash;

// What a model is shown, and asked for: which word of the vocabulary comes next.
struct TextShape {
  static constexpr std::string_view kKind = "text", kSamples = "tokens", kUnit = "tok";
  static constexpr bool kByPerplexity = true;  // Rather than by accuracy.
  static constexpr bool kInWindows = true;     // Whether a sample of a batch is a stream's window.
  int vocabulary;

  int choices() const { return vocabulary; }
};

// Two words with a meaning of their own: one that the vocabulary lacks, and the end of a line.
inline constexpr std::string_view kUnknownWord = "<unk>", kEndOfLine = "<eos>";

struct TextSet {
  std::vector<std::string> vocabulary;
  std::vector<std::int32_t> train, test;

  TextShape shape() const { return {static_cast<int>(vocabulary.size())}; }
  void add_to(Hash& hash) const;
};

}  // namespace accordion
