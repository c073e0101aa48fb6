#include "accordion/data/vocabulary.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "accordion/base/error.h"

namespace accordion {
namespace {

// How often each word is in the training text; more than any can be for those that stay in any case.
std::vector<std::size_t> frequencies(const TextSet& text) {
  std::vector<std::size_t> counts(text.vocabulary.size());
  for (const std::int32_t token : text.train) ++counts[static_cast<std::size_t>(token)];
  for (std::size_t word = 0; word < counts.size(); ++word)
    if (text.vocabulary[word] == kUnknownWord || text.vocabulary[word] == kEndOfLine)
      counts[word] = std::numeric_limits<std::size_t>::max();
  return counts;
}

}  // namespace

void limit_vocabulary(TextSet& text, std::size_t words) {
  if (words < kFewestWords)
    throw UsageError("vocabulary=" + std::to_string(words) + ", expected at least " +
                     std::to_string(kFewestWords) + ": <unk>, <eos> and a word");
  std::vector<std::string>& vocabulary = text.vocabulary;
  if (vocabulary.size() <= words) return;
  if (std::find(vocabulary.begin(), vocabulary.end(), kUnknownWord) == vocabulary.end())
    vocabulary.emplace_back(kUnknownWord);

  const std::vector<std::size_t> counts = frequencies(text);
  std::vector<std::size_t> kept(vocabulary.size());
  std::iota(kept.begin(), kept.end(), 0);
  std::stable_sort(kept.begin(), kept.end(), [&](auto a, auto b) { return counts[a] > counts[b]; });
  kept.resize(words);
  std::sort(kept.begin(), kept.end());

  std::vector<std::int32_t> places(vocabulary.size(), -1);
  std::vector<std::string> smaller;
  for (const std::size_t word : kept) {
    places[word] = static_cast<std::int32_t>(smaller.size());
    smaller.push_back(std::move(vocabulary[word]));
  }
  const auto unknown = std::find(smaller.begin(), smaller.end(), kUnknownWord) - smaller.begin();
  std::replace(places.begin(), places.end(), -1, static_cast<std::int32_t>(unknown));
  for (auto* tokens : {&text.train, &text.test})
    for (std::int32_t& token : *tokens) token = places[static_cast<std::size_t>(token)];
  vocabulary = std::move(smaller);
}

}  // namespace accordion
