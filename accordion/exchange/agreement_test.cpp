#include "accordion/exchange/agreement.h"

#include <gtest/gtest.h>

#include "accordion/base/error.h"
#include "accordion/comm/loopback.h"
#include "accordion/exchange/exchange.h"

namespace accordion {
namespace {

TEST(Agreement, HoldsWhenAllSayTheSame) {
  for (int ranks = 1; ranks <= 5; ++ranks)
    run_loopback(ranks, [](Communicator& comm) {
      const Claim claims[] = {{"configuration", "lr = 0.1\nepochs = 3\n"}, {"data", "mnist"}};
      EXPECT_NO_THROW(require_agreement(comm, claims));
    });
}

TEST(Agreement, NamesTheRankAndTheLineOnEveryRank) {
  run_loopback(4, [](Communicator& comm) {
    const bool odd = comm.rank() == 2;
    const Claim claims[] = {{"configuration", odd ? "lr = 0.2\nepochs = 3\n" : "lr = 0.1\nepochs = 3\n"},
                            {"model", "fc.weight [10, 4]\n"},
                            {"data", odd ? "mnist 1\nextra" : "mnist 1"}};
    try {
      require_agreement(comm, claims);
      ADD_FAILURE() << "rank " << comm.rank() << " did not notice";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "rank 2 differs from rank 0 in its configuration: lr = 0.2 against lr = 0.1; "
                   "rank 2 differs from rank 0 in its data: extra against nothing");
    }
  });
}

// Rank 1 speaks the protocol by hand, and means a length that no memory holds.
TEST(Agreement, DoesNotTrustALengthThatAPeerAnnounces) {
  run_loopback(2, [](Communicator& group) {
    if (group.rank() == 1) {
      std::uint64_t hash = 1, length = std::uint64_t{1} << 60, all[2];
      group.gather(std::as_bytes(std::span(&hash, 1)), std::as_writable_bytes(std::span(all)));
      group.gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(all)));
      return;
    }
    const Claim claims[] = {{"model", "one layer"}};
    try {
      require_agreement(group, claims);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "rank 1 announces a claim of 1152921504606846976 bytes, expected at most 67108864");
    }
  });
}

TEST(Exchange, CountsWhatItSaysBesideGradients) {
  run_loopback(2, [](Communicator& group) {
    Exchange exchange(group, {{"a", {{64, 64}}}}, {.levels = {parse_codec("threshold:lambda=0.5")}});
    EXPECT_EQ(exchange.take_epoch_stats().traffic.control_bytes, 16u) << "that levels are the same";
    std::vector<float> gradient(64 * 64, 1);
    exchange.mean(gradient, std::vector<Slice>{{0, 0, gradient.size()}});
    exchange.end_step();
    EXPECT_EQ(exchange.take_epoch_stats().traffic.control_bytes, 8u + 4u)
        << "a length, and that all was finite";
  });
}

// Ranks that are not about to exchange the same must not begin: each of these changes what messages mean.
TEST(Exchange, RefusesRanksThatDiffer) {
  const std::vector<TensorInfo> tensors = {{"a", {{64, 64}}}, {"b", {{64, 32}}}};
  const ExchangeOptions options{.levels = {parse_codec("topk:keep=0.1"), parse_codec("topk:keep=0.01")},
                                .seed = 1};
  run_loopback(2, [&](Communicator& group) {
    const bool odd = group.rank() == 1;
    const auto refused = [&](const std::vector<TensorInfo>& of, const ExchangeOptions& with) {
      try {
        Exchange exchange(group, of, with);
        return false;
      } catch (const Error&) {
        return true;
      }
    };
    EXPECT_FALSE(refused(tensors, options));
    ExchangeOptions other = options;
    if (odd) other.seed = 2;
    EXPECT_TRUE(refused(tensors, other)) << "seed";
    other = options;
    if (odd) other.levels[1] = parse_codec("topk:keep=0.02");
    EXPECT_TRUE(refused(tensors, other)) << "the setting of a level, though none is at it yet";
    other = options;
    if (odd) other.published = true;
    EXPECT_TRUE(refused(tensors, other)) << "published";
    std::vector<TensorInfo> strange = tensors;
    if (odd) strange[1].shape = {{32, 64}};
    EXPECT_TRUE(refused(strange, options)) << "shape";
    strange = tensors;
    if (odd) strange[1].name = "c";
    EXPECT_TRUE(refused(strange, options)) << "name";
    Exchange exchange(group, tensors, options);
    EXPECT_THROW(exchange.set_levels(std::vector<int>{0, odd ? 1 : 0}), Error);
  });
}

TEST(Exchange, CountsWhatItSaysAboutUnusedTensors) {
  run_loopback(2, [](Communicator& group) {
    const std::vector<TensorInfo> tensors = {{"a", {{8, 4}}}, {"b", {{8, 4}}}, {"c", {{8, 4}}}};
    Exchange exchange(group, tensors, {});
    exchange.take_epoch_stats();
    const std::vector<Slice> slices = {{0, 0, 32}, {1, 32, 32}, {2, 64, 32}};
    const std::vector<char> used = {1, group.rank() == 1, 0};
    EXPECT_EQ(exchange.used_by_any(slices, used).size(), 2u);
    EXPECT_EQ(exchange.take_epoch_stats().traffic.control_bytes, 3u) << "a flag for each";
  });
}

// A peer that sends something else than it should, in the place of an exchange.
TEST(Exchange, DoesNotTrustALengthThatAPeerAnnounces) {
  run_loopback(2, [](Communicator& group) {
    const std::vector<TensorInfo> tensors = {{"a", {{64, 64}}}};
    if (group.rank() == 1) {
      std::uint64_t nothing[2] = {};
      group.max(std::span<std::uint64_t>(nothing));
      const std::uint64_t absurd = 1ull << 60;
      std::vector<std::uint64_t> lengths(2);
      group.gather(std::as_bytes(std::span(&absurd, 1)), std::as_writable_bytes(std::span(lengths)));
      return;
    }
    Exchange exchange(group, tensors, {.levels = {parse_codec("threshold:lambda=0.5")}});
    std::vector<float> gradient(64 * 64, 1);
    try {
      exchange.mean(gradient, std::vector<Slice>{{0, 0, gradient.size()}});
      ADD_FAILURE() << "believed";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what())
                    .find("rank 0: rank 1 announces 1152921504606846976 bytes, expected at most"),
                0u)
          << error.what();
    }
  });
}

}  // namespace
}  // namespace accordion
