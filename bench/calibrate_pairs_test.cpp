#include "bench/calibrate_pairs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "accordion/comm/loopback.h"

namespace accordion::bench {
namespace {

TEST(Pairs, AreAllOfAFewRanksAndNeighboursOfMany) {
  for (const auto& [ranks, pairs] : {std::pair(2, 1), std::pair(4, 6), std::pair(17, 16)})
    run_loopback_groups(ranks, [&](Group& group) {
      const Pairs found = measure_pairs(group, 0.001);
      EXPECT_EQ(found.count, pairs);
      EXPECT_GT(found.slowest_gbps, 0);
      EXPECT_LE(found.slowest_gbps, found.middle_gbps);
      EXPECT_LT(found.slowest[0], found.slowest[1]);
      double least = found.slowest_gbps;
      group.control().max(std::span(&least, 1));
      EXPECT_EQ(least, found.slowest_gbps) << "the same on all ranks";
    });
}

// A communicator whose messages between two of its ranks take 20 ms longer.
class OneSlowLink final : public Communicator {
 public:
  OneSlowLink(Communicator& plain, int a, int b) : plain_(plain), a_(a), b_(b) {}
  int rank() const override { return plain_.rank(); }
  int size() const override { return plain_.size(); }
  std::unique_ptr<Transfer> start_send(int to, std::span<const std::byte> bytes) override {
    if (bytes.size() > 1000 && ((rank() == a_ && to == b_) || (rank() == b_ && to == a_)))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return plain_.start_send(to, bytes);
  }
  std::unique_ptr<Transfer> start_receive(int from, std::span<std::byte> bytes) override {
    return plain_.start_receive(from, bytes);
  }

 private:
  Communicator& plain_;
  int a_, b_;
};

TEST(Pairs, NameTheSlowestOne) {
  run_loopback_groups(4, [](Group& plain) {
    Group group(std::make_shared<OneSlowLink>(plain.gradients(), 1, 3),
                std::shared_ptr<Communicator>(&plain.control(), [](Communicator*) {}));
    const Pairs found = measure_pairs(group, 0.01);
    EXPECT_EQ(found.slowest[0], 1);
    EXPECT_EQ(found.slowest[1], 3);
    EXPECT_LT(found.slowest_gbps, 64e3 * 8 / 1e9 / 0.02 * 1.01);
  });
}

}  // namespace
}  // namespace accordion::bench
