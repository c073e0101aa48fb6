// What collectives ask of a back end, whatever back end it is: bytes are in use until their transfer was waited for, a
// receive is asked for before it is needed, and nobody sends far ahead of what it receives.
#include "accordion/comm/lockstep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <numeric>
#include <thread>

#include "accordion/comm/loopback.h"
#include "accordion/comm/segments.h"

namespace accordion {
namespace {

using Milliseconds = std::chrono::milliseconds;

// Of all ranks: whose messages are on their way to each, and of how many at once at most.
class Senders {
 public:
  explicit Senders(int ranks)
      : under_way_(static_cast<std::size_t>(ranks), std::vector<int>(static_cast<std::size_t>(ranks))) {}

  void sent(int from, int to) {
    std::lock_guard lock(mutex_);
    auto& towards = under_way_[static_cast<std::size_t>(to)];
    ++towards[static_cast<std::size_t>(from)];
    most_ = std::max(most_, std::ranges::count_if(towards, [](int messages) { return messages > 0; }));
  }
  void received(int from, int to) {
    std::lock_guard lock(mutex_);
    --under_way_[static_cast<std::size_t>(to)][static_cast<std::size_t>(from)];
  }
  std::ptrdiff_t most() const { return most_; }

 private:
  std::mutex mutex_;
  std::vector<std::vector<int>> under_way_;  // By receiver and sender.
  std::ptrdiff_t most_ = 0;
};

class Checked final : public Communicator {
 public:
  explicit Checked(Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }

  std::unique_ptr<Transfer> start_send(int to, std::span<const std::byte> bytes) override {
    EXPECT_TRUE(unused(bytes, receiving_)) << "sent from bytes that are being received";
    ++sends;
    sent_bytes_ += bytes.size();
    most_ahead = std::max(most_ahead, sent_bytes_ - std::min(sent_bytes_, received_bytes_));
    if (senders) senders->sent(rank(), to);
    return std::make_unique<Use>(inner_.start_send(to, bytes), sending_, bytes, Milliseconds(0));
  }
  std::unique_ptr<Transfer> start_receive(int from, std::span<std::byte> bytes) override {
    EXPECT_TRUE(unused(bytes, sending_)) << "received into bytes that are being sent";
    EXPECT_TRUE(unused(bytes, receiving_)) << "received twice";
    if (sends == 0) ++asked_before_first_send;
    return std::make_unique<Use>(inner_.start_receive(from, bytes), receiving_, bytes, receive_takes,
                                 [this, from, count = bytes.size()] {
                                   received_bytes_ += count;
                                   if (senders) senders->received(from, rank());
                                 });
  }

  std::size_t sends = 0, asked_before_first_send = 0, most_ahead = 0;
  Milliseconds receive_takes{0};  // At least.
  Senders* senders = nullptr;     // Is told of them, if there is one.

 private:
  using Places = std::list<std::span<const std::byte>>;

  class Use final : public Transfer {
   public:
    Use(std::unique_ptr<Transfer> transfer, Places& places, std::span<const std::byte> bytes,
        Milliseconds takes, std::function<void()> ended = {})
        : transfer_(std::move(transfer)),
          places_(places),
          place_(places.insert(places.end(), bytes)),
          takes_(takes),
          ended_(std::move(ended)) {}
    ~Use() override { end(); }
    void wait() override {
      std::this_thread::sleep_for(takes_);
      transfer_->wait();
      end();
    }

   private:
    void end() {
      if (place_ == places_.end()) return;
      if (ended_) ended_();
      places_.erase(place_);
      place_ = places_.end();
    }
    std::unique_ptr<Transfer> transfer_;
    Places& places_;
    Places::iterator place_;
    Milliseconds takes_;
    std::function<void()> ended_;
  };

  static bool unused(std::span<const std::byte> bytes, const Places& places) {
    return std::none_of(places.begin(), places.end(), [&](std::span<const std::byte> other) {
      return bytes.data() < other.data() + other.size() && other.data() < bytes.data() + bytes.size();
    });
  }

  Communicator& inner_;
  Places sending_, receiving_;
  std::size_t sent_bytes_ = 0, received_bytes_ = 0;
};

TEST(Lockstep, KeepsTheRulesOfTransfers) {
  for (int ranks : {2, 3, 5})
    for (std::size_t count : {1u, 10'000u, 40'000u, 1'000'000u})
      run_loopback(ranks, [&](Communicator& inner) {
        Checked group(inner);
        std::vector<float> values(count);
        std::iota(values.begin(), values.end(), static_cast<float>(group.rank()));
        group.sum(std::span(values));
        const auto n = static_cast<float>(ranks);
        EXPECT_EQ(values[0], n * (n - 1) / 2);
        std::vector<std::byte> all(count * static_cast<std::size_t>(ranks));
        group.gather(std::as_bytes(std::span(values)).first(count), all);
        group.broadcast(all, ranks - 1);
        EXPECT_GT(group.asked_before_first_send, 0u) << "requests wait behind what was sent before them";
      });
}

// The first rank is late: the others must not have sent it, or each other, all they have.
TEST(Lockstep, NobodySendsFarAhead) {
  constexpr std::size_t kCount = 2'000'000;
  for (int ranks : {2, 4})
    run_loopback(ranks, [&](Communicator& inner) {
      Checked group(inner);
      std::vector<float> values(kCount, 1);
      group.sum(std::span(values));
      const std::size_t whole =
          2 * kCount * sizeof(float) * static_cast<std::size_t>(ranks - 1) / static_cast<std::size_t>(ranks);
      EXPECT_LT(group.most_ahead, whole / 2) << "of " << whole;
    });
}

// If all sent to one at once, their flows would starve each other on its link: it has one sender, and while all turn to their next
// peers a second one. Blocks here are shorter than those that go round the peers with every segment (rounds_of), and have more
// segments than ranks can be apart.
TEST(Lockstep, ARankReceivesFromFewAtATime) {
  constexpr int kRanks = 5;
  constexpr std::size_t kBlock = 17 * kLeastSegment;
  Senders of_sum(kRanks), of_gather(kRanks);
  run_loopback(kRanks, [&](Communicator& inner) {
    Checked group(inner);
    group.receive_takes = Milliseconds(inner.rank() == 0 ? 4 : 2);
    std::vector<float> few(kRanks * 5 * kLeastSegment / sizeof(float)), many(kRanks * kBlock / sizeof(float));
    for (int k = 0; k < 5; ++k) group.sum(std::span(few));  // Learns how slow the links are.
    group.senders = &of_sum;
    group.sum(std::span(many));
    group.senders = &of_gather;
    std::vector<std::byte> all(kRanks * kBlock);
    group.gather(std::as_bytes(std::span(many)).first(kBlock), all);
  });
  EXPECT_LE(of_sum.most(), 2);
  EXPECT_LE(of_gather.most(), 2);
  EXPECT_GE(of_gather.most(), 1);
}

// What lies ahead of a slow link only fills its queues: the first sum does not know yet, later ones do.
TEST(Lockstep, SendsLessFarAheadOnASlowLink) {
  run_loopback(2, [](Communicator& inner) {
    Checked group(inner);
    group.receive_takes = Milliseconds(4);
    std::vector<float> values(400'000, 1);
    const auto most_ahead = [&] {
      group.most_ahead = 0;
      group.sum(std::span(values));
      return group.most_ahead;
    };
    const std::size_t first = most_ahead();
    for (int k = 0; k < 5; ++k) most_ahead();
    EXPECT_LT(most_ahead(), first / 2);
  });
}

class LongSums {
 public:
  LongSums(Communicator& inner, Milliseconds receive_takes) : group_(inner), values_(1'500'000) {
    group_.receive_takes = receive_takes;
  }

  // How many messages it took.
  std::size_t sum() {
    group_.sends = 0;
    std::fill(values_.begin(), values_.end(), static_cast<float>(group_.rank()));
    group_.sum(std::span(values_));
    EXPECT_TRUE(std::all_of(values_.begin(), values_.end(), [](float sum) { return sum == 3; }));
    return group_.sends;
  }

 private:
  Checked group_;
  std::vector<float> values_;
};

TEST(Lockstep, LongSumsHaveMoreSegmentsOnASlowLink) {
  run_loopback(3, [](Communicator& inner) {
    LongSums slow(inner, Milliseconds(8));
    const std::size_t first = slow.sum();
    EXPECT_EQ(first, 2 * 2 * 8 + 2u) << "and to each the pace";
    slow.sum();
    EXPECT_GT(slow.sum(), 1.5 * static_cast<double>(first));
  });
}

// Each has its own idea of how fast the links are.
TEST(Lockstep, RanksAgreeOnTheNumberOfSegments) {
  run_loopback(3, [](Communicator& inner) {
    LongSums uneven(inner, Milliseconds(1 + inner.rank()));
    for (int k = 0; k < 8; ++k) {
      auto sends = static_cast<std::int64_t>(uneven.sum());
      std::int64_t most = sends;
      inner.max(std::span(&most, 1));
      EXPECT_EQ(sends, most);
    }
  });
}

}  // namespace
}  // namespace accordion
