#include "accordion/comm/loopback.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

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
        EXPECT_TRUE(std::string(error.what()).starts_with("rank " + std::to_string(group.rank()) + ": ") &&
                    std::string(error.what()).ends_with(": rank 2 has left the group"))
            << error.what();
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

TEST(Loopback, ARankThatAbandonsReleasesTheOthersAndStaysOut) {
  run_loopback(3, [](Communicator& group) {
    const std::string self = "rank " + std::to_string(group.rank());
    float one = 1;
    group.sum(std::span(&one, 1));
    if (group.rank() == 1) group.abandon("no memory");
    for (int attempt = 0; attempt < 2; ++attempt) try {
        group.sum(std::span(&one, 1));
        ADD_FAILURE() << "nothing was thrown";
      } catch (const Error& error) {
        const std::string reason = error.what();
        EXPECT_TRUE(reason.ends_with(group.rank() == 1 ? "no memory" : "has left the group")) << reason;
        EXPECT_EQ(reason.starts_with(self + " is out of step with the others since: "),
                  group.rank() == 1 || attempt > 0)
            << reason;
      }
  });
}

// What went wrong first is what matters.
TEST(Loopback, KeepsTheFirstReason) {
  run_loopback(2, [](Communicator& group) {
    const std::string self = "rank " + std::to_string(group.rank());
    float one = 1;
    group.abandon("no memory");
    group.abandon("no disk either");
    try {
      group.sum(std::span(&one, 1));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), self + " is out of step with the others since: no memory");
    }
  });
}

// Whoever gave up a transfer has its bytes to itself again, and the next one takes its place.
TEST(Loopback, NothingMovesForATransferThatIsGone) {
  const auto group = make_loopback(2);
  const std::vector<std::byte> one(8, std::byte{1}), two(8, std::byte{2}), nothing(8);
  std::vector<std::byte> gone(8), kept(8);
  auto given_up = group[0]->start_receive(1, gone);
  const auto receive = group[0]->start_receive(1, kept);
  given_up.reset();
  const auto send = group[1]->start_send(0, one);
  ASSERT_EQ(gone, nothing);
  ASSERT_EQ(kept, one);
  receive->wait();
  send->wait();

  given_up = group[1]->start_send(0, one);
  const auto next_send = group[1]->start_send(0, two);
  given_up.reset();
  const auto next_receive = group[0]->start_receive(1, kept);
  ASSERT_EQ(kept, two);
  next_receive->wait();
  next_send->wait();
}

// Passes messages on, and counts them on the way.
class Counting final : public Communicator {
 public:
  explicit Counting(Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::unique_ptr<Transfer> start_send(int to, std::span<const std::byte> bytes) override {
    EXPECT_NE(to, rank());
    EXPECT_FALSE(bytes.empty());
    sent += bytes.size();
    return inner_.start_send(to, bytes);
  }
  std::unique_ptr<Transfer> start_receive(int from, std::span<std::byte> bytes) override {
    EXPECT_NE(from, rank());
    received += bytes.size();
    return inner_.start_receive(from, bytes);
  }
  std::uint64_t sent = 0, received = 0;

 private:
  Communicator& inner_;
};

TEST(Loopback, CountsWhatItHandsToOtherRanks) {
  for (int ranks = 1; ranks <= 4; ++ranks)
    run_loopback(ranks, [](Communicator& inner) {
      Counting group(inner);
      contract::all_to_all_moves_every_pair(group);
      contract::sum_and_max_follow_ieee(group);
      contract::calls_keep_their_order(group);  // Sums and broadcasts.
      EXPECT_EQ(group.sent_bytes(), group.sent);
      std::int64_t balance =
          static_cast<std::int64_t>(group.sent) - static_cast<std::int64_t>(group.received);
      inner.sum(std::span(&balance, 1));
      EXPECT_EQ(balance, 0);
    });
}

// What a ring would move, whatever the number of segments, and to each rank how fast messages have been arriving; in one round
// everything goes to everyone.
TEST(Loopback, MovesNoMoreThanARing) {
  for (int ranks = 2; ranks <= 5; ++ranks)
    run_loopback(ranks, [](Communicator& group) {
      const auto n = static_cast<std::uint64_t>(group.size());
      std::vector<float> values(n * 100000);
      group.sum(std::span(values));
      const std::uint64_t sent = (2 * 400000 + sizeof(double)) * (n - 1);
      EXPECT_EQ(group.sent_bytes(), sent);
      std::vector<float> few(10);
      group.sum(std::span(few));
      EXPECT_EQ(group.sent_bytes(), sent + 40 * (n - 1));
    });
}

// So long that they go round the peers segment by segment where there are few of them; twice, because the first tells the pace.
TEST(Loopback, LongSumsAddInRankOrder) {
  const auto value = [](int rank, std::size_t i) {
    return static_cast<float>((i + 1) * static_cast<std::size_t>(rank + 7) % 8191) / 3.0F;
  };
  for (int ranks = 2; ranks <= 5; ++ranks)
    run_loopback(ranks, [&](Communicator& group) {
      std::vector<float> values((std::size_t{2} << 20) / sizeof(float) * static_cast<std::size_t>(ranks) +
                                11);
      for (int repeat = 0; repeat < 2; ++repeat) {
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(group.rank(), i);
        group.sum(std::span(values));
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          float expected = value(0, i);
          for (int r = 1; r < ranks; ++r) expected += value(r, i);
          wrong += values[i] != expected;
        }
        EXPECT_EQ(wrong, 0u) << ranks << " ranks, sum " << repeat;
      }
    });
}

// While everything fits into a few packets it goes to everyone at once; beyond that nobody sends more than in a ring.
TEST(Loopback, MovesNoMoreThanARingUnlessItIsLittle) {
  for (int ranks = 2; ranks <= 5; ++ranks)
    run_loopback(ranks, [](Communicator& group) {
      const auto n = static_cast<std::uint64_t>(group.size());
      for (const std::uint64_t count : {500u, 1000u, 2000u, 4000u, 8000u, 16000u}) {
        const std::uint64_t before = group.sent_bytes();
        std::vector<float> values(count);
        group.sum(std::span(values));
        const std::uint64_t ring = 2 * values.size() * sizeof(float) * (n - 1) / n;
        EXPECT_LE(group.sent_bytes() - before, std::max<std::uint64_t>(32768, ring + 16 * n)) << count;
      }
    });
}

// From rank to rank where it is large: no link carries it twice.
TEST(Loopback, NobodySendsALargeBroadcastTwice) {
  for (int ranks = 2; ranks <= 5; ++ranks)
    run_loopback(ranks, [](Communicator& group) {
      for (int root = 0; root < group.size(); ++root) {
        const std::uint64_t before = group.sent_bytes();
        std::vector<std::byte> bytes(1'000'000);
        group.broadcast(bytes, root);
        EXPECT_LE(group.sent_bytes() - before, bytes.size());
      }
    });
}

// Nothing is written beyond what was asked for.
TEST(Loopback, NamesAMessageThatIsTooLong) {
  run_loopback(2, [](Communicator& group) {
    const std::byte sent[64] = {};
    std::vector<std::byte> received(64, std::byte{7});
    if (group.rank() == 0) {
      const std::span<const std::byte> send[] = {{}, sent};
      const std::span<std::byte> receive[] = {{}, {}};
      group.all_to_all(send, receive);
      return;
    }
    const std::span<const std::byte> send[] = {{}, {}};
    const std::span<std::byte> receive[] = {std::span(received).first(4), {}};
    try {
      group.all_to_all(send, receive);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "rank 1: receiving 4 bytes from rank 0: it sent 64");
    }
    EXPECT_EQ(received, std::vector<std::byte>(64, std::byte{7}));
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
        EXPECT_STREQ(error.what(), "rank 1: receiving 4 bytes from rank 0: it sent 3");
      }
    }
  });
}

}  // namespace
}  // namespace accordion
