#include "accordion/models/lstm.h"

#include <gtest/gtest.h>

#include "accordion/models/describe.h"
#include "accordion/models/models_testing.h"
#include "accordion/run/shapes.h"

namespace accordion {
namespace {

constexpr TextShape kLstmText{30};
constexpr LstmOptions kSmallLstm{.layers = 2, .hidden = 8, .dropout = 0.5};

class LstmState : public testing::Test {
 protected:
  LstmState() {
    torch::manual_seed(2);
    model_ = make(kSmallLstm, kLstmText);
    model_->eval();
    text_ = torch::randint(kLstmText.vocabulary, {3, 10}, torch::kLong);
  }

  // Scores of some positions, stream by stream.
  torch::Tensor read(int first, int count) {
    return model_->forward(text_.narrow(1, first, count)).view({text_.size(0), count, kLstmText.vocabulary});
  }

  std::shared_ptr<Network> model_;
  torch::Tensor text_;
};

TEST(Lstm, HasThePublishedParameterCountEitherWay) {
  const auto count = [](const std::string& setting, int vocabulary) {
    return parameter_count(model_tensors(setting, TextShape{vocabulary}));
  };
  EXPECT_EQ(count("lstm", 28869), 28949319u);
  EXPECT_EQ(count("lstm:layers=2", 34069), 28949319u);
  EXPECT_EQ(count("lstm:layers=5,hidden=7", 11), 8u * 5 * 7 * 8 + 11 * 8);
}

TEST(Lstm, StartsSmallAndWithoutAPreference) {
  torch::manual_seed(1);
  const auto model = make(kSmallLstm, TextShape{5000});
  const auto parameters = model->named_parameters();
  const auto largest = parameters["embedding.weight"].abs().max().item<double>();
  EXPECT_LE(largest, 0.1);
  EXPECT_GT(largest, 0.099);
  EXPECT_EQ(parameters["bias"].abs().max().item<double>(), 0);
}

TEST_F(LstmState, GoesOnWhereTheLastWindowEnded) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor whole = read(0, 10);
  model_->forget();
  const torch::Tensor parts = torch::cat({read(0, 4), read(4, 1), read(5, 5)}, 1);
  EXPECT_LT((whole - parts).abs().max().item<double>(), 1e-6);
}

TEST_F(LstmState, IsForgottenOnRequestAndWithAnotherNumberOfStreams) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor fresh = read(0, 5);
  EXPECT_GT((read(0, 5) - fresh).abs().max().item<double>(), 1e-3) << "the second window knows the first";
  model_->forget();
  EXPECT_TRUE(torch::equal(read(0, 5), fresh));
  model_->forward(text_.narrow(0, 0, 1));
  EXPECT_TRUE(torch::equal(read(0, 5), fresh));
}

TEST_F(LstmState, IsKeptApartForEveryStream) {
  const torch::NoGradGuard no_grad;
  read(0, 5);
  const torch::Tensor together = read(5, 5);
  for (int stream = 0; stream < 3; ++stream) {
    model_->forget();
    model_->forward(text_.narrow(0, stream, 1).narrow(1, 0, 5));
    const torch::Tensor alone = model_->forward(text_.narrow(0, stream, 1).narrow(1, 5, 5));
    EXPECT_LT((together[stream] - alone).abs().max().item<double>(), 1e-6);
  }
}

// A second backward through the first window's graph, which its own has freed, would throw.
TEST_F(LstmState, EndsTheGradientAtTheWindow) {
  model_->train();
  for (int window = 0; window < 2; ++window) EXPECT_NO_THROW(read(5 * window, 5).sum().backward());
}

TEST_F(LstmState, DropsUnitsInTrainingOnly) {
  const torch::NoGradGuard no_grad;
  const auto twice_equal = [&] {
    model_->forget();
    const torch::Tensor once = read(0, 5);
    model_->forget();
    return torch::equal(once, read(0, 5));
  };
  EXPECT_TRUE(twice_equal());
  model_->train();
  EXPECT_FALSE(twice_equal());
}

TEST(Lstm, RefusesValuesOutOfRange) {
  const auto refusal = [](const char* setting) -> std::string {
    try {
      parse_model(setting);
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal("lstm:dropout=1"), "lstm: dropout=1, expected [0, 1)");
  EXPECT_EQ(refusal("lstm:layers=0"), "lstm: layers=0, expected [1, 64]");
  EXPECT_EQ(refusal("lstm:hidden=64,layers=1,dropout=0"), "");
}

}  // namespace
}  // namespace accordion
