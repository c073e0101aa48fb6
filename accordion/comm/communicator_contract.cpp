#include "accordion/comm/communicator_contract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "accordion/base/hash.h"

namespace accordion::contract {
namespace {

// Empty, fewer than ranks, odd, around the kernels' blocks and the switch from one round to two.
constexpr std::size_t kSizes[] = {0, 1, 2, 3, 31, 1023, 1024, 1025, 4097, 100003};

std::string place(const Communicator& group, std::size_t count) {
  return "rank " + std::to_string(group.rank()) + " of " + std::to_string(group.size()) + ", " +
         std::to_string(count) + " values";
}

// Element i of what `rank` contributes. Floats differ in magnitude by up to 2^24, so that another order of
// additions rounds differently.
template <class T>
T value(int rank, std::size_t i, std::uint64_t salt = 0) {
  const std::uint64_t bits = Hash().add(static_cast<std::uint64_t>(rank)).add(i).add(salt).value();
  if constexpr (std::is_floating_point_v<T>) {
    const auto fraction = static_cast<T>(1) + static_cast<T>(bits >> 11) * static_cast<T>(0x1p-53);
    return std::ldexp(bits & 1 ? -fraction : fraction, static_cast<int>(bits >> 1 & 0xff) % 25 - 12);
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
std::vector<T> values(int rank, std::size_t count, std::uint64_t salt = 0) {
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = value<T>(rank, i, salt);
  return result;
}

template <class T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// The sum taken in the given order of ranks.
template <class T>
std::vector<T> local_sum(const std::vector<int>& ranks, std::size_t count, std::uint64_t salt = 0) {
  std::vector<T> result = values<T>(ranks.front(), count, salt);
  for (auto rank = ranks.begin() + 1; rank != ranks.end(); ++rank)
    for (std::size_t i = 0; i < count; ++i) result[i] = wrapping_sum(result[i], value<T>(*rank, i, salt));
  return result;
}

std::vector<int> in_order(int ranks) {
  std::vector<int> order;
  for (int r = 0; r < ranks; ++r) order.push_back(r);
  return order;
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return same_bits(std::span<const T>(a), std::span<const T>(b));
}

// Whether all ranks hold the same bytes.
template <class T>
bool same_everywhere(Communicator& group, const std::vector<T>& mine) {
  const std::uint64_t hash = Hash().add(std::as_bytes(std::span(mine))).value();
  std::vector<std::uint64_t> all(static_cast<std::size_t>(group.size()));
  group.gather(std::as_bytes(std::span(&hash, 1)), std::as_writable_bytes(std::span(all)));
  return std::all_of(all.begin(), all.end(), [&](std::uint64_t other) { return other == hash; });
}

// Calls `check` with a value of every type that can be summed.
void for_each_type(auto&& check) {
  check(float{});
  check(double{});
  check(std::int8_t{});
  check(std::int16_t{});
  check(std::int32_t{});
  check(std::int64_t{});
  check(std::uint64_t{});
}

}  // namespace

void knows_its_place(Communicator& group) {
  EXPECT_GE(group.rank(), 0);
  EXPECT_LT(group.rank(), group.size());
}

// Every pair exchanges a message of a length of its own; every third is empty.
void all_to_all_moves_every_pair(Communicator& group) {
  auto message = [&](int from, int to, std::size_t scale) {
    const std::size_t length =
        (from + 2 * to) % 3 == 2 ? 0 : scale * static_cast<std::size_t>(1 + from + 7 * to);
    return values<std::int8_t>(from, length, static_cast<std::uint64_t>(to));
  };
  for (std::size_t scale : {1, 31, 4097}) {
    std::vector<std::vector<std::int8_t>> out, in;
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> receive;
    for (int r = 0; r < group.size(); ++r) {
      out.push_back(message(group.rank(), r, scale));
      in.emplace_back(message(r, group.rank(), scale).size());
    }
    for (const auto& bytes : out) send.push_back(std::as_bytes(std::span(bytes)));
    for (auto& bytes : in) receive.push_back(std::as_writable_bytes(std::span(bytes)));
    group.all_to_all(send, receive);
    for (int r = 0; r < group.size(); ++r)
      EXPECT_TRUE(same_bits(in[static_cast<std::size_t>(r)], message(r, group.rank(), scale)))
          << place(group, scale) << ": from rank " << r;
  }
}

// Copied when it has two places, left alone when it has one.
void own_message_arrives(Communicator& group) {
  const auto self = static_cast<std::size_t>(group.rank());
  std::vector<std::span<const std::byte>> send(static_cast<std::size_t>(group.size()));
  std::vector<std::span<std::byte>> receive(send.size());
  for (std::size_t count : kSizes) {
    std::vector<float> mine = values<float>(group.rank(), count), copy(count);
    send[self] = std::as_bytes(std::span(mine));
    receive[self] = std::as_writable_bytes(std::span(copy));
    group.all_to_all(send, receive);
    EXPECT_TRUE(same_bits(copy, mine)) << place(group, count);
    receive[self] = std::as_writable_bytes(std::span(mine));
    group.all_to_all(send, receive);
    EXPECT_TRUE(same_bits(copy, mine)) << place(group, count);
  }
}

void gather_takes_unequal_lengths(Communicator& group) {
  for (std::size_t count : kSizes) {
    // Rank 1 sends nothing.
    auto length = [&](int rank) { return rank == 1 ? 0 : count + static_cast<std::size_t>(3 * rank); };
    for (bool in_place : {false, true}) {
      std::vector<std::vector<float>> all;
      std::vector<std::span<std::byte>> receive;
      for (int r = 0; r < group.size(); ++r) all.emplace_back(length(r));
      for (auto& each : all) receive.push_back(std::as_writable_bytes(std::span(each)));
      const std::vector<float> mine = values<float>(group.rank(), length(group.rank()));
      auto& own = all[static_cast<std::size_t>(group.rank())];
      if (in_place) std::copy(mine.begin(), mine.end(), own.begin());
      group.gather(std::as_bytes(std::span(in_place ? own : mine)), receive);
      for (int r = 0; r < group.size(); ++r)
        EXPECT_TRUE(same_bits(all[static_cast<std::size_t>(r)], values<float>(r, length(r))))
            << place(group, count) << ": from rank " << r << (in_place ? ", in place" : "");
    }
  }
}

void gather_of_equal_lengths_is_contiguous(Communicator& group) {
  for (std::size_t count : kSizes) {
    const std::vector<std::int16_t> mine = values<std::int16_t>(group.rank(), count);
    std::vector<std::int16_t> all(count * static_cast<std::size_t>(group.size())), expected;
    for (int r = 0; r < group.size(); ++r) {
      const auto theirs = values<std::int16_t>(r, count);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    group.gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
    EXPECT_TRUE(same_bits(all, expected)) << place(group, count);
  }
}

void broadcast_comes_from_every_root(Communicator& group) {
  std::vector<std::size_t> sizes(std::begin(kSizes), std::end(kSizes));
  sizes.push_back(500009);  // Bytes, in several segments.
  for (std::size_t count : sizes)
    for (int root = 0; root < group.size(); ++root) {
      std::vector<std::int8_t> bytes = values<std::int8_t>(group.rank(), count);
      group.broadcast(std::as_writable_bytes(std::span(bytes)), root);
      EXPECT_TRUE(same_bits(bytes, values<std::int8_t>(root, count)))
          << place(group, count) << ": root " << root;
    }
}

void sum_adds_in_rank_order(Communicator& group) {
  for_each_type([&]<class T>(T) {
    for (std::size_t count : kSizes) {
      std::vector<T> mine = values<T>(group.rank(), count);
      group.sum(std::span(mine));
      EXPECT_TRUE(same_bits(mine, local_sum<T>(in_order(group.size()), count)))
          << place(group, count) << " of " << sizeof(T) << " bytes";
      EXPECT_TRUE(same_everywhere(group, mine)) << place(group, count);
      if (std::is_floating_point_v<T> && group.size() > 2 && count >= 31) {
        std::vector<int> other = in_order(group.size());
        std::rotate(other.begin(), other.begin() + 1, other.end());
        EXPECT_FALSE(same_bits(mine, local_sum<T>(other, count))) << "the values do not show the order";
      }
    }
  });
}

void max_takes_the_largest(Communicator& group) {
  for_each_type([&]<class T>(T) {
    for (std::size_t count : kSizes) {
      std::vector<T> mine = values<T>(group.rank(), count), expected = values<T>(0, count);
      for (int r = 1; r < group.size(); ++r)
        for (std::size_t i = 0; i < count; ++i) expected[i] = std::max(expected[i], value<T>(r, i));
      group.max(std::span(mine));
      EXPECT_TRUE(same_bits(mine, expected)) << place(group, count) << " of " << sizeof(T) << " bytes";
      EXPECT_TRUE(same_everywhere(group, mine)) << place(group, count);
    }
  });
}

// A tensor's sum has the same bits alone and anywhere in a larger buffer.
void sum_does_not_depend_on_the_place(Communicator& group) {
  constexpr std::size_t kCount = 1025, kBuffer = 100003;
  std::vector<float> alone = values<float>(group.rank(), kCount);
  group.sum(std::span(alone));
  for (std::size_t offset : {std::size_t{1}, std::size_t{777}, kBuffer / 2 - 3, kBuffer - kCount}) {
    std::vector<float> buffer = values<float>(group.rank(), kBuffer, 1);
    for (std::size_t i = 0; i < kCount; ++i) buffer[offset + i] = value<float>(group.rank(), i);
    group.sum(std::span(buffer));
    EXPECT_TRUE(
        same_bits(std::span<const float>(buffer).subspan(offset, kCount), std::span<const float>(alone)))
        << place(group, kBuffer) << " at " << offset;
  }
}

// Where one rank holds something special and the others 1, and where all hold it.
void sum_and_max_follow_ieee(Communicator& group) {
  constexpr float kInf = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t repeat : {1, 5000})  // The small and the large path.
    for (int special = 0; special < group.size(); ++special) {
      const bool mine = group.rank() == special, several = group.size() > 1;
      const std::vector<float> pattern = {-0.0f,           mine ? kInf : 1,     mine ? -kInf : 1,
                                          mine ? kNan : 1, mine ? kInf : -kInf, mine ? -0.0f : 0.0f};
      std::vector<float> sum;
      for (std::size_t i = 0; i < repeat; ++i) sum.insert(sum.end(), pattern.begin(), pattern.end());
      std::vector<float> max = sum;
      group.sum(std::span(sum));
      group.max(std::span(max));
      for (std::size_t i = 0; i < repeat; i += repeat / 5 + 1) {
        const float* s = &sum[i * pattern.size()];
        EXPECT_TRUE(s[0] == 0 && std::signbit(s[0])) << "-0 + -0 gave " << s[0];
        EXPECT_EQ(s[1], kInf);
        EXPECT_EQ(s[2], -kInf);
        EXPECT_TRUE(std::isnan(s[3])) << s[3];
        EXPECT_TRUE(several ? std::isnan(s[4]) : s[4] == kInf) << "inf - inf gave " << s[4];
        EXPECT_EQ(std::signbit(s[5]), !several) << "-0 + 0 gave " << s[5];
        const float* m = &max[i * pattern.size()];
        EXPECT_TRUE(m[0] == 0 && std::signbit(m[0])) << m[0];
        EXPECT_EQ(m[1], kInf);
        EXPECT_EQ(m[2], several ? 1 : -kInf);
        EXPECT_TRUE(std::isnan(m[3])) << "rank " << special << "'s NaN was lost: " << m[3];
        EXPECT_EQ(m[4], kInf);
      }
    }
}

// Many small calls in a row with a large one now and then: nothing overtakes, nothing piles up.
void calls_keep_their_order(Communicator& group) {
  for (int call = 0; call < 1000; ++call) {
    const std::size_t count = call % 100 == 99 ? 100003 : static_cast<std::size_t>(call % 4);
    const auto salt = static_cast<std::uint64_t>(call);
    std::vector<std::int32_t> mine = values<std::int32_t>(group.rank(), count, salt);
    if (call % 3 == 0) {
      const int root = call % group.size();
      group.broadcast(std::as_writable_bytes(std::span(mine)), root);
      EXPECT_TRUE(same_bits(mine, values<std::int32_t>(root, count, salt)))
          << place(group, count) << ": call " << call;
    } else {
      group.sum(std::span(mine));
      EXPECT_TRUE(same_bits(mine, local_sum<std::int32_t>(in_order(group.size()), count, salt)))
          << place(group, count) << ": call " << call;
    }
  }
}

}  // namespace accordion::contract
