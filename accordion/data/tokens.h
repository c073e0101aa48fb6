// Tokenised text files, raw or gzip. WikiText-2 has this form, and what we convert gets it.
//
// file := line*            -- a last line need not end in a newline
// line := word* newline    -- blanks around the words, as many as you like
//
// Each line, an empty one too, ends with the token <eos>. A word is any run of bytes other than blanks
// (space, tab, carriage return, vertical tab, form feed) and newlines; byte 0 is refused, as no text has it.
#pragma once

#include <filesystem>

#include "accordion/data/text.h"

namespace accordion {

// The vocabulary is that of the training text, in order of first appearance, <eos> among it. A word of the
// test text that it lacks becomes <unk>, if the training text has that word.
TextSet read_tokens(const std::filesystem::path& train_file, const std::filesystem::path& test_file);

}  // namespace accordion
