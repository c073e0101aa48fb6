// A smaller vocabulary for a smaller model.
#pragma once

#include <cstddef>

#include "accordion/data/text.h"

namespace accordion {

// <unk>, <eos>, and a word to tell apart from them.
inline constexpr std::size_t kFewestWords = 3;

// Keeps the `words` most frequent words of the training text, of equally frequent ones those that come first
// in the vocabulary. <unk> and <eos> are always among them. All others become <unk>, which is added at the
// end if the vocabulary lacks it. What is kept stays in order; a vocabulary of at most `words` stays as it
// is.
void limit_vocabulary(TextSet& text, std::size_t words);

}  // namespace accordion
