// A text as numbers: each token is its word's place in the vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace accordion {

struct TextSet {
  std::vector<std::string> vocabulary;
  std::vector<std::int32_t> train, test;
};

}  // namespace accordion
