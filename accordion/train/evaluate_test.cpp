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

ImageSet made_up(std::size_t samples, std::size_t correct) {
  ImageSet data{{}, {}, {0.0f}, {1.0f}};
  data.test = {1, 4, 4, 10, std::vector<std::uint8_t>(samples * 16), {}};
  for (std::size_t i = 0; i < samples; ++i) {
    const std::size_t brightest = i % 10;
    data.test.pixels[16 * i + brightest] = 255;
    data.test.labels.push_back(static_cast<std::uint8_t>(i < correct ? brightest : (brightest + 1) % 10));
  }
  return data;
}

TEST(Evaluate, CountsEverySampleOnceWhateverTheNumberOfRanks) {
  for (const std::size_t samples : {3, 203, 1000}) {
    const std::size_t correct = samples / 3;
    const ImageSet data = made_up(samples, correct);
    double loss_alone = 0;
    for (int ranks = 1; ranks <= 5; ++ranks)
      run_loopback(ranks, [&](Communicator& comm) {
        FirstPixels model;
        const Evaluation result = evaluate(model, data, data.test, comm);
        EXPECT_EQ(result.accuracy, static_cast<double>(correct) / static_cast<double>(samples))
            << samples << " " << ranks;
        if (ranks == 1) loss_alone = result.loss;
        EXPECT_NEAR(result.loss, loss_alone, 1e-12 * loss_alone);
        EXPECT_TRUE(model.is_training()) << "back in training mode";
      });
  }
}

}  // namespace
}  // namespace accordion
