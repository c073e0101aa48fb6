// What every kind of data says of itself.
#include <gtest/gtest.h>

#include "accordion/data/dataset.h"

namespace accordion {
namespace {

Dataset images() {
  const Images train{1, 2, 2, 3, std::vector<std::uint8_t>(20, 7), {0, 1, 2, 0, 1}};
  const Images test{1, 2, 2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 1, 0}};
  return {"images", ImageSet{.train = train, .test = test, .mean = {0}, .deviation = {1}}};
}

Dataset text() {
  return {"text", TextSet{.vocabulary = {"a", "b"}, .train = {0, 1, 1, 0}, .test = {1, 0, 1}}};
}

Dataset table() {
  const Table train{
      .numbers = 1, .tables = {5, 3}, .values = {1, 2}, .category = {4, 2, 0, 1}, .labels = {1, 0}};
  const Table test{.numbers = 1,
                   .tables = {5, 3},
                   .values = {3, 4, 5},
                   .category = {1, 1, 2, 2, 3, 0},
                   .labels = {0, 1, 1}};
  return {"table", TableSet{.train = train, .test = test}};
}

TEST(Kinds, KnowTheirSizesAndWords) {
  const struct {
    Dataset data;
    std::size_t train;
    std::string_view kind, samples, unit;
    bool by_perplexity, in_windows;
    int choices;
  } cases[] = {{images(), 5, "images", "images", "img", false, false, 3},
               {text(), 4, "text", "tokens", "tok", true, true, 2},
               {table(), 2, "tables", "rows", "rows", false, false, 2}};
  for (const auto& each : cases) {
    const DatasetFacts facts = facts_of(each.data);
    EXPECT_EQ(facts.train_samples, each.train) << each.kind;
    EXPECT_EQ(facts.test_samples, 3u) << each.kind;
    EXPECT_EQ(facts.input.index(), each.data.contents.index()) << each.kind;
    EXPECT_EQ(kind_name(facts.input), each.kind);
    EXPECT_EQ(sample_name(facts.input), each.samples);
    EXPECT_EQ(sample_unit(facts.input), each.unit);
    EXPECT_EQ(by_perplexity(facts.input), each.by_perplexity) << each.kind;
    EXPECT_EQ(in_windows(facts.input), each.in_windows) << each.kind;
    EXPECT_EQ(choices(facts.input), each.choices) << each.kind;
  }
}

TEST(Kinds, KeepTheFirstTestsWholeAndTheTrainingSet) {
  for (const Dataset& whole : {images(), text(), table()}) {
    Dataset data = whole;
    limit_tests(data, 2);
    EXPECT_EQ(facts_of(data).test_samples, 2u) << data.name;
    EXPECT_EQ(facts_of(data).train_samples, facts_of(whole).train_samples) << data.name;
    Dataset more = whole;
    limit_tests(more, 4);
    EXPECT_EQ(fingerprint(more), fingerprint(whole)) << "there are no more than 3 of " << data.name;
  }
  Dataset data = images();
  limit_tests(data, 2);
  EXPECT_EQ(std::get<ImageSet>(data.contents).test.pixels,
            (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(std::get<ImageSet>(data.contents).test.labels, (std::vector<std::uint8_t>{2, 1}));
  data = text();
  limit_tests(data, 2);
  EXPECT_EQ(std::get<TextSet>(data.contents).test, (std::vector<std::int32_t>{1, 0}));
  data = table();
  limit_tests(data, 2);
  const Table& test = std::get<TableSet>(data.contents).test;
  EXPECT_EQ(test.values, (std::vector<float>{3, 4}));
  EXPECT_EQ(test.category, (std::vector<std::int32_t>{1, 1, 2, 2}));
  EXPECT_EQ(test.labels, (std::vector<std::uint8_t>{0, 1}));
}

}  // namespace
}  // namespace accordion
