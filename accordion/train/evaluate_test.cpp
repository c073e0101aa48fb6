#include "accordion/train/evaluate.h"

#include <gtest/gtest.h>

#include "accordion/comm/loopback.h"

namespace accordion {
namespace {

// Scores class c by pixel c, so that the right answers are known.
class FirstPixels final : public Network {
 public:
  torch::Tensor forward(torch::Tensor images) override { return images.flatten(1).narrow(1, 0, 10); }
};

Dataset made_up(std::size_t samples, std::size_t correct) {
  ImageSet data{{}, {}, {0.0f}, {1.0f}};
  data.test = {1, 4, 4, 10, std::vector<std::uint8_t>(samples * 16), {}};
  for (std::size_t i = 0; i < samples; ++i) {
    const std::size_t brightest = i % 10;
    data.test.pixels[16 * i + brightest] = 255;
    data.test.labels.push_back(static_cast<std::uint8_t>(i < correct ? brightest : (brightest + 1) % 10));
  }
  return {"made-up", std::move(data)};
}

constexpr int kWords = 7;

// Scores word w after word v by a table, and adds up what it has read since it last forgot.
class Bigrams final : public Network {
 public:
  Bigrams() : scores(torch::randn({kWords, kWords})) {}
  torch::Tensor forward(torch::Tensor tokens) override {
    EXPECT_FALSE(is_training());
    read += tokens.size(1);
    longest = std::max(longest, tokens.size(1));
    return scores.index({tokens.flatten()});
  }
  void forget() override { read = 0; }

  torch::Tensor scores;
  std::int64_t read = 5, longest = 0;
};

TEST(Evaluate, CountsEverySampleOnceWhateverTheNumberOfRanks) {
  for (const std::size_t samples : {3, 203, 1000}) {
    const std::size_t correct = samples / 3;
    const Dataset data = made_up(samples, correct);
    double loss_alone = 0;
    for (int ranks = 1; ranks <= 5; ++ranks)
      run_loopback(ranks, [&](Communicator& comm) {
        FirstPixels model;
        const Evaluation result = evaluate(model, data, 1, comm);
        EXPECT_EQ(result.accuracy, static_cast<double>(correct) / static_cast<double>(samples))
            << samples << " " << ranks;
        EXPECT_FALSE(result.perplexity);
        if (ranks == 1) loss_alone = result.loss;
        EXPECT_NEAR(result.loss, loss_alone, 1e-12 * loss_alone);
        EXPECT_TRUE(model.is_training()) << "back in training mode";
      });
  }
}

TEST(Evaluate, PredictsEveryTokenButTheFirstWhateverTheNumberOfRanks) {
  torch::manual_seed(5);
  const torch::Tensor table = torch::randn({kWords, kWords}), chances = table.log_softmax(1);
  for (const std::size_t tokens : {2, 20, 33, 34, 700}) {
    TextSet text{std::vector<std::string>(kWords, "word"), {}, {}};
    for (std::size_t i = 0; i < tokens; ++i) text.test.push_back(static_cast<std::int32_t>(i * i % kWords));
    double loss = 0;
    for (std::size_t i = 1; i < tokens; ++i)
      loss -= chances[text.test[i - 1]][text.test[i]].item<double>() / static_cast<double>(tokens - 1);
    const Dataset data{"made-up", std::move(text)};
    for (int ranks = 1; ranks <= 5; ++ranks)
      run_loopback(ranks, [&](Communicator& comm) {
        Bigrams model;
        model.scores = table;
        const Evaluation result = evaluate(model, data, 4, comm);
        EXPECT_NEAR(result.loss, loss, 1e-6) << tokens << " " << ranks;
        EXPECT_NEAR(result.perplexity.value(), std::exp(loss), 1e-5);
        EXPECT_FALSE(result.accuracy);
        EXPECT_LE(model.longest, 4);
        EXPECT_EQ(model.read, 0) << "forgets the test text before training goes on";
      });
  }
}

TEST(Evaluate, RowsOfATableHaveAnAccuracy) {
  // Scores a row by its number and by its category.
  class Threshold final : public Network {
    torch::Tensor forward(torch::Tensor rows) override {
      const torch::Tensor score = rows.select(1, 0) + rows.select(1, 1);
      return torch::stack({torch::zeros_like(score), score}, 1);
    }
  };
  TableSet tables;
  tables.test = {1, {4}, {-2.5f, -0.5f, 1.0f, -1.5f}, {1, 3, 0, 2}, {0, 1, 0, 1}};
  const Dataset data{"made-up", std::move(tables)};
  for (int ranks = 1; ranks <= 5; ++ranks)
    run_loopback(ranks, [&](Communicator& comm) {
      Threshold model;
      EXPECT_EQ(evaluate(model, data, 1, comm).accuracy, 0.75);
    });
}

}  // namespace
}  // namespace accordion
