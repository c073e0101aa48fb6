#include "accordion/models/dlrm.h"

#include <gtest/gtest.h>

#include "accordion/base/error.h"
#include "accordion/models/describe.h"
#include "accordion/models/models_testing.h"
#include "accordion/run/shapes.h"

namespace accordion {
namespace {

const TableShape kDlrmTable{3, {7, 5}};

std::string refusal(auto&& attempt) {
  try {
    attempt();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Dlrm, HasATableForEachCategoryAndTwoMlps) {
  const auto tensors = model_tensors("dlrm:embedding=4,bottom=10,top=6", kDlrmTable);
  // Three vectors make three pairs.
  EXPECT_EQ(parameter_count(tensors), (3u * 10 + 10) + (10 * 5 + 5) + (5 * 4 + 4) + (7 + 5) * 4 +
                                          ((4 + 3) * 6 + 6) + (6 * 3 + 3) + (3 + 1));
}

TEST(Dlrm, GivesTheLogitOfAOneBesideZero) {
  torch::manual_seed(3);
  const auto model = make(DlrmOptions{}, kDlrmTable);
  const MadeUpBatch batch = made_up(kDlrmTable, 16);
  const torch::Tensor scores = model->forward(batch.input);
  EXPECT_EQ(scores.select(1, 0).abs().max().item<double>(), 0);
  const torch::Tensor logistic =
      torch::binary_cross_entropy_with_logits(scores.select(1, 1), batch.targets.to(torch::kFloat));
  EXPECT_NEAR(torch::nn::functional::cross_entropy(scores, batch.targets).item<double>(),
              logistic.item<double>(), 1e-6);
}

TEST(Dlrm, HasDenseGradientsThatAreZeroWhereNoRowLooked) {
  torch::manual_seed(3);
  const auto model = make(DlrmOptions{}, kDlrmTable);
  loss_of(*model, {torch::tensor({{0.5f, -1.f, 2.f, 6.f, 0.f}, {1.f, 1.f, 0.f, 2.f, 0.f}}),
                   torch::tensor({1, 0}, torch::kLong)})
      .backward();
  const torch::Tensor gradient = model->named_parameters()["tables.0.weight"].grad();
  EXPECT_EQ(gradient.layout(), torch::kStrided);
  const torch::Tensor touched = gradient.abs().amax(1) > 0;
  EXPECT_TRUE(torch::equal(touched.nonzero().flatten(), torch::tensor({2, 6}, torch::kLong)));
}

TEST(Dlrm, NamesACategoryThatItsTableDoesNotHave) {
  const auto model = make(DlrmOptions{}, kDlrmTable);
  const auto with = [&](float first, float second) {
    return refusal([&] {
      model->forward(torch::tensor({{0.f, 0.f, 0.f, 6.f, 4.f}, {0.f, 0.f, 0.f, first, second}}));
    });
  };
  EXPECT_EQ(with(0, 0), "");
  EXPECT_EQ(with(7, 0), "dlrm: category 7 of table 0 in row 1 of the batch, expected [0, 7)");
  EXPECT_EQ(with(0, -1), "dlrm: category -1 of table 1 in row 1 of the batch, expected [0, 5)");
  EXPECT_NE(with(std::nanf(""), 0), "");
}

TEST(Dlrm, RefusesRowsThatLackNumbersOrCategories) {
  EXPECT_EQ(refusal([] {
              make(DlrmOptions{}, TableShape{0, {3}});
            }),
            "dlrm: rows of 0 numbers and 1 categories, expected at least one of each");
  EXPECT_THROW(make(DlrmOptions{}, TableShape{2, {}}), UsageError);
}

}  // namespace
}  // namespace accordion
