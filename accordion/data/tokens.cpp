#include "accordion/data/tokens.h"

#include <string_view>
#include <unordered_map>

#include "accordion/data/byte_file.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

bool separates_tokens(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

class TokenFile {
 public:
  explicit TokenFile(const fs::path& path) : file_(path), bytes_(file_.read_rest()) {
    if (bytes_.empty()) file_.fail(0, "the file is empty, expected words separated by blanks");
    if (const std::size_t zero = text().find('\0'); zero != std::string_view::npos)
      file_.fail(zero, "a byte of value 0, expected text in UTF-8");
  }

  std::string path() const { return file_.path().string(); }

  // Calls `token(word, byte)` with every token and where it is. The words are views of this object.
  template <class Token>
  void for_each(Token token) const {
    const std::string_view text = this->text();
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t begin = at;
      while (at < text.size() && !separates_tokens(text[at]) && text[at] != '\n') ++at;
      if (at > begin) token(text.substr(begin, at - begin), begin);
      if (at < text.size() && text[at] == '\n') token(kEndOfLine, at);
      ++at;
    }
    if (text.back() != '\n') token(kEndOfLine, text.size());
  }

  [[noreturn]] void fail(std::size_t byte, const std::string& message) const { file_.fail(byte, message); }

 private:
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

  ByteFile file_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

TextSet read_tokens(const fs::path& train_file, const fs::path& test_file) {
  TextSet set;
  const TokenFile train(train_file), test(test_file);
  std::unordered_map<std::string_view, std::int32_t> places;
  train.for_each([&](std::string_view word, std::size_t) {
    const auto [entry, is_new] = places.try_emplace(word, static_cast<std::int32_t>(set.vocabulary.size()));
    if (is_new) set.vocabulary.emplace_back(word);
    set.train.push_back(entry->second);
  });
  const auto unknown = places.find(kUnknownWord);
  test.for_each([&](std::string_view word, std::size_t byte) {
    auto entry = places.find(word);
    if (entry == places.end()) entry = unknown;
    if (entry == places.end())
      test.fail(byte, "the word \"" + std::string(word) + "\" is not in the training text " + train.path() +
                          ", and no <unk> there stands for such words");
    set.test.push_back(entry->second);
  });
  return set;
}

}  // namespace accordion
