#include "accordion/data/vocabulary.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using testing::ElementsAre;

using Words = std::vector<std::string>;

TEST(LimitVocabulary, KeepsTheMostFrequentInOrder) {
  TextSet text{.vocabulary = {"rare", "<eos>", "often", "<unk>", "twice", "also"},
               .train = {0, 2, 2, 2, 4, 4, 5, 5, 3, 1},
               .test = {0, 5, 4, 1}};
  limit_vocabulary(text, 4);
  EXPECT_THAT(text.vocabulary, ElementsAre("<eos>", "often", "<unk>", "twice"))
      << "also is as frequent, and later";
  EXPECT_THAT(text.train, ElementsAre(2, 1, 1, 1, 3, 3, 2, 2, 2, 0));
  EXPECT_THAT(text.test, ElementsAre(2, 2, 3, 0));
}

TEST(LimitVocabulary, AddsTheUnknownWord) {
  TextSet text{.vocabulary = {"a", "b", "c", "<eos>"}, .train = {0, 0, 1, 1, 1, 2, 3}, .test = {0, 1, 2, 3}};
  limit_vocabulary(text, 3);
  EXPECT_THAT(text.vocabulary, ElementsAre("b", "<eos>", "<unk>"));
  EXPECT_THAT(text.train, ElementsAre(2, 2, 0, 0, 0, 2, 1));
  EXPECT_THAT(text.test, ElementsAre(2, 0, 2, 1));
}

TEST(LimitVocabulary, ASmallVocabularyStays) {
  const TextSet before{.vocabulary = {"a", "b", "c", "<eos>"}, .train = {0, 1, 2, 3}, .test = {0}};
  TextSet text = before;
  limit_vocabulary(text, 4);
  EXPECT_EQ(text.vocabulary, before.vocabulary);
  EXPECT_EQ(text.train, before.train);
}

TEST(LimitVocabulary, TooFewWords) {
  TextSet text{.vocabulary = {"a", "<eos>"}, .train = {0, 1}, .test = {}};
  try {
    limit_vocabulary(text, 2);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "vocabulary=2, expected at least 3: <unk>, <eos> and a word");
  }
}

// Any text over up to forty words, some never used, with or without the two special ones, in any order.
TextSet drawn_text() {
  TextSet text;
  const int ordinary = *rc::gen::inRange(1, 40);
  for (int i = 0; i < ordinary; ++i) text.vocabulary.push_back("w" + std::to_string(i));
  for (const std::string_view special : {kUnknownWord, kEndOfLine})
    if (*rc::gen::arbitrary<bool>())
      text.vocabulary.insert(text.vocabulary.begin() + *rc::gen::inRange(0, ordinary), std::string(special));
  const auto token = rc::gen::inRange<std::int32_t>(0, static_cast<std::int32_t>(text.vocabulary.size()));
  text.train = *rc::gen::container<std::vector<std::int32_t>>(token);
  text.test = *rc::gen::container<std::vector<std::int32_t>>(token);
  return text;
}

Words spelt(const TextSet& text, const std::vector<std::int32_t>& tokens) {
  Words words;
  for (const std::int32_t token : tokens)
    words.push_back(text.vocabulary.at(static_cast<std::size_t>(token)));
  return words;
}

bool holds(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

RC_GTEST_PROP(LimitVocabulary, HasTheSizeAndChangesOnlyWhatItDrops, ()) {
  const TextSet before = drawn_text();
  const auto words = *rc::gen::inRange<std::size_t>(kFewestWords, 45);
  TextSet after = before;
  limit_vocabulary(after, words);
  RC_ASSERT(after.vocabulary.size() == std::min(words, before.vocabulary.size()));
  RC_ASSERT(holds(after.vocabulary, kEndOfLine) == holds(before.vocabulary, kEndOfLine));
  RC_ASSERT(holds(after.vocabulary, kUnknownWord) ||
            (!holds(before.vocabulary, kUnknownWord) && before.vocabulary.size() <= words));
  for (const auto part : {&TextSet::train, &TextSet::test}) {
    Words expected = spelt(before, before.*part);
    for (std::string& word : expected)
      if (!holds(after.vocabulary, word)) word = kUnknownWord;
    RC_ASSERT(spelt(after, after.*part) == expected);
  }
}

RC_GTEST_PROP(LimitVocabulary, DropsNothingMoreFrequentThanItKeeps, ()) {
  const TextSet before = drawn_text();
  TextSet after = before;
  limit_vocabulary(after, *rc::gen::inRange<std::size_t>(kFewestWords, 45));
  std::map<std::string, int> counts;
  for (const std::string& word : spelt(before, before.train)) ++counts[word];
  int fewest_kept = INT32_MAX;
  for (const std::string& word : after.vocabulary)
    if (word != kUnknownWord && word != kEndOfLine) fewest_kept = std::min(fewest_kept, counts[word]);
  for (const std::string& word : before.vocabulary)
    if (!holds(after.vocabulary, word)) RC_ASSERT(counts[word] <= fewest_kept);
}

RC_GTEST_PROP(LimitVocabulary, StepByStepIsTheSameAsAtOnce, ()) {
  const auto words = *rc::gen::inRange<std::size_t>(kFewestWords, 45);
  const auto more = words + *rc::gen::inRange<std::size_t>(0, 10);
  TextSet at_once = drawn_text(), stepwise = at_once;
  limit_vocabulary(at_once, words);
  for (const std::size_t limit : {more, words, words}) limit_vocabulary(stepwise, limit);
  RC_ASSERT(stepwise.vocabulary == at_once.vocabulary);
  RC_ASSERT(stepwise.train == at_once.train);
  RC_ASSERT(stepwise.test == at_once.test);
}

}  // namespace
}  // namespace accordion
