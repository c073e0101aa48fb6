#include "accordion/data/tokens.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TokensTest : public WithFolder {
 protected:
  static Bytes bytes(const std::string& text) { return {text.begin(), text.end()}; }
  TextSet read(const std::string& train, const std::string& test) const {
    write_file(file("train"), bytes(train));
    write_file(file("test"), bytes(test));
    return read_tokens(file("train"), file("test"));
  }
};

TEST_F(TokensTest, NumbersWordsInOrderOfFirstAppearance) {
  const TextSet set = read(" the cat \n \n the dog <unk> \n", "a dog \n");
  EXPECT_THAT(set.vocabulary, ElementsAre("the", "cat", "<eos>", "dog", "<unk>"));
  EXPECT_THAT(set.train, ElementsAre(0, 1, 2, 2, 0, 3, 4, 2));
  EXPECT_THAT(set.test, ElementsAre(4, 3, 2));
}

TEST_F(TokensTest, EveryLineEndsWithAToken) {
  const auto ends = [&](const std::string& text) { return read("x\n", text).test; };
  EXPECT_THAT(ends("\n"), ElementsAre(1));
  EXPECT_THAT(ends("\n\n"), ElementsAre(1, 1));
  EXPECT_THAT(ends("x"), ElementsAre(0, 1));
  EXPECT_THAT(ends("x\n"), ElementsAre(0, 1));
  EXPECT_THAT(ends("x\n "), ElementsAre(0, 1, 1)) << "a line of one blank";
  EXPECT_THAT(ends("x\r\nx\r\n"), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(ends("\t x\v\fx \n"), ElementsAre(0, 0, 1));
}

TEST_F(TokensTest, ReadsGzip) {
  write_gzip(file("train.gz"), bytes("a b\n"));
  write_gzip(file("test.gz"), bytes("b"));
  const TextSet set = read_tokens(file("train.gz"), file("test.gz"));
  EXPECT_THAT(set.train, ElementsAre(0, 1, 2));
  EXPECT_THAT(set.test, ElementsAre(1, 2));
}

TEST_F(TokensTest, AWordWithoutANumberIsNamedWithItsByte) {
  EXPECT_THAT(
      message_of([&] { read("a b\n", "b a\nb news\n"); }),
      AllOf(HasSubstr(file("test").string() + ": byte 6: the word \"news\" is not in the training text " +
                      file("train").string()),
            HasSubstr("no <unk>")));
  // A text that names the end of a line gives it a number, however its lines end.
  EXPECT_THAT(read("a <eos> b", "b\n").test, ElementsAre(2, 1));
}

TEST_F(TokensTest, RefusesWhatIsNoText) {
  EXPECT_EQ(message_of([&] { read("", "a"); }),
            file("train").string() + ": byte 0: the file is empty, expected words separated by blanks");
  EXPECT_EQ(message_of([&] { read("a\n", std::string("a\0b", 3)); }),
            file("test").string() + ": byte 1: a byte of value 0, expected text in UTF-8");
  EXPECT_THAT(message_of([&] { read_tokens(file("train"), file("none")); }),
              AllOf(HasSubstr(file("none").string()), HasSubstr("cannot open")));
}

// Longer than any buffer on the way: the seams must not cut words.
TEST_F(TokensTest, LongText) {
  std::string text;
  for (int i = 0; i < 700000; ++i) text += std::to_string(i % 1000) + (i % 7 == 6 ? "\n" : " ");
  const TextSet set = read(text, text);
  EXPECT_EQ(set.vocabulary.size(), 1001u);
  EXPECT_EQ(set.train.size(), 800000u);
  EXPECT_EQ(set.train, set.test);
}

RC_GTEST_FIXTURE_PROP(TokensTest, WhatIsWrittenIsRead, ()) {
  const auto words = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab<>.\xc3\xa9"))))));
  const auto blank = [] { return *rc::gen::element<std::string>(" ", "  ", "\n", " \n", "\n\n ", "\t"); };
  std::vector<std::string> expected;
  std::string text;
  for (const std::string& word : words) {
    const std::string after = blank();
    text += word + after;
    expected.push_back(word);
    for (const char c : after)
      if (c == '\n') expected.emplace_back("<eos>");
  }
  if (text.back() != '\n') expected.emplace_back("<eos>");

  const TextSet set = read(text, text);
  std::vector<std::string> first_appearances, got;
  for (const std::string& word : expected)
    if (std::find(first_appearances.begin(), first_appearances.end(), word) == first_appearances.end())
      first_appearances.push_back(word);
  for (const std::int32_t token : set.train)
    got.push_back(set.vocabulary.at(static_cast<std::size_t>(token)));
  RC_ASSERT(got == expected);
  RC_ASSERT(set.vocabulary == first_appearances);
  RC_ASSERT(set.test == set.train);
}

}  // namespace
}  // namespace accordion
