// The State of the Union addresses, from an npm package of plain texts to tokenised files (tokens.h).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace accordion {

// Lower-case words (don't, 1st), numbers (3,000,000), and runs of one mark (. ; --). Typographic quotes and
// dashes become plain ones; other characters beyond ASCII count as letters.
std::vector<std::string> tokenise(std::string_view text);

// data/*.txt of the package to sotu.train.tokens and sotu.test.tokens, a line a speech. Every tenth speech in
// order of file name is for the test. Words seen fewer than three times in the training speeches become
// <unk>.
void convert_sotu_package(const std::filesystem::path& package, const std::filesystem::path& out_folder);

}  // namespace accordion
