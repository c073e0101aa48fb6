#include "accordion/comm/loopback.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "accordion/base/error.h"
#include "accordion/comm/communicator_contract.h"

namespace accordion {
namespace {

using Parameters = std::tuple<ContractCase, int>;

class LoopbackContract : public testing::TestWithParam<Parameters> {};

TEST_P(LoopbackContract, Holds) {
  const auto& [test, ranks] = GetParam();
  run_loopback(ranks, test.run);
}

INSTANTIATE_TEST_SUITE_P(Ranks, LoopbackContract,
                         testing::Combine(testing::ValuesIn(kContract), testing::Range(1, 6)),
                         [](const testing::TestParamInfo<Parameters>& info) {
                           return std::get<0>(info.param).name + std::to_string(std::get<1>(info.param));
                         });

TEST(Loopback, ARankThatThrowsReleasesTheOthers) {
  std::atomic<int> released = 0;
  try {
    run_loopback(4, [&](Communicator& group) {
      float one = 1;
      group.sum(std::span(&one, 1));
      if (group.rank() == 2) throw Error("rank 2: out of luck");
      try {
        group.sum(std::span(&one, 1));
      } catch (const Error& error) {
        EXPECT_EQ(error.what(),
                  "rank " + std::to_string(group.rank()) + ": all_to_all: rank 2 has left the group");
        ++released;
        throw;
      }
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 2: out of luck");
  }
  EXPECT_EQ(released, 3);
}

TEST(Loopback, GradientsAndControlWorkAtTheSameTime) {
  run_loopback_groups(3, [](Group& group) {
    EXPECT_EQ(group.size(), 3);
    EXPECT_EQ(group.control().rank(), group.rank());
    std::thread gradients([&] { contract::calls_keep_their_order(group.gradients()); });
    contract::calls_keep_their_order(group.control());
    gradients.join();
  });
}

TEST(Loopback, ABrokenGroupStaysBroken) {
  run_loopback(3, [](Communicator& group) {
    if (group.rank() == 0) return;
    float one = 1;
    for (int attempt = 0; attempt < 3; ++attempt) EXPECT_THROW(group.sum(std::span(&one, 1)), Error);
  });
}

TEST(Loopback, NamesAMessageOfTheWrongLength) {
  run_loopback(2, [](Communicator& group) {
    const std::byte sent[3] = {};
    std::byte received[4];
    const std::span<const std::byte> send[] = {sent, sent};
    const std::span<std::byte> receive[] = {std::span(received).first(3), std::span(received).first(3)};
    const std::span<std::byte> wrong[] = {received, std::span(received).first(3)};
    if (group.rank() == 0) {
      group.all_to_all(send, receive);
    } else {
      try {
        group.all_to_all(send, wrong);
        FAIL() << "nothing was thrown";
      } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "rank 1: all_to_all: rank 0 sent 3 bytes, expected 4");
      }
    }
  });
}

}  // namespace
}  // namespace accordion
