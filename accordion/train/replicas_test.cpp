#include "accordion/train/replicas.h"

#include <gtest/gtest.h>

#include "accordion/base/error.h"
#include "accordion/comm/loopback.h"

namespace accordion {
namespace {

// What all ranks are told when ranks flip one bit of a tensor's last value.
std::string told(int ranks, const std::vector<int>& flipped) {
  std::string message;
  run_loopback(ranks, [&](Communicator& control) {
    std::vector<torch::Tensor> tensors = {torch::ones({3, 4}), torch::ones({1000})};
    for (const int rank : flipped)
      if (control.rank() == rank)
        reinterpret_cast<std::int32_t*>(tensors[1].data_ptr<float>())[999] ^= 1 << rank;
    try {
      require_same_replicas(control, {"first.weight", "second.weight"}, tensors, "after epoch 3");
    } catch (const Error& error) {
      if (control.rank() == 0) message = error.what();
      EXPECT_FALSE(flipped.empty());
      return;
    }
    EXPECT_TRUE(flipped.empty());
  });
  return message;
}

TEST(Replicas, FlippedBitIsFoundWithItsTensorAndRank) {
  EXPECT_EQ(told(3, {}), "");
  EXPECT_EQ(told(1, {}), "");
  const std::string start = "replicas have drifted apart: second.weight ";
  EXPECT_EQ(told(3, {2}).find(start + "of rank 2 differs from the other ranks' after epoch 3"), 0u)
      << told(3, {2});
  EXPECT_EQ(told(3, {0}).find(start + "of rank 0 differs"), 0u);
  EXPECT_EQ(told(5, {1, 3}).find(start + "of rank 1, 3 differs"), 0u);
  EXPECT_EQ(told(2, {1}).find(start + "differs between rank 0 and rank 1"), 0u)
      << "with two there is no majority";
  EXPECT_EQ(told(4, {1, 3}).find(start + "differs between ranks, and no majority agrees"), 0u);
}

}  // namespace
}  // namespace accordion
