// Ranks are threads here, with connections over loopback as if they were processes.
#include "accordion/comm/tcp.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/comm/communicator_contract.h"
#include "accordion/comm/tcp_meeting.h"

namespace accordion {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Board {
 public:
  Noticeboard of_a_rank() {
    return {.write =
                [this](const std::string& key, const std::string& text) {
                  std::lock_guard lock(mutex_);
                  texts_[key] = text;
                  changed_.notify_all();
                },
            .find =
                [this](const std::string& key, Deadline deadline) {
                  std::unique_lock lock(mutex_);
                  if (!changed_.wait_until(lock, deadline, [&] { return texts_.contains(key); }))
                    throw Error("nobody wrote " + key);
                  return texts_[key];
                }};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> texts_;
};

// What each rank's body threw, or "".
std::vector<std::string> run_ranks(int ranks, const std::function<void(Communicator&)>& body,
                                   milliseconds timeout = milliseconds(20000)) {
  Board board;
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      try {
        TcpCommunicator group(
            r,
            connect_ranks(r, ranks, "127.0.0.1", board.of_a_rank(), Clock::now() + std::chrono::seconds(10)),
            timeout);
        body(group);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(r)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void expect_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class TcpContract : public testing::TestWithParam<int> {};

TEST_P(TcpContract, Holds) {
  expect_no_errors(run_ranks(GetParam(), [](Communicator& group) {
    for (const ContractCase& test : kContract) {
      SCOPED_TRACE(test.name);
      test.run(group);
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Ranks, TcpContract, testing::Range(1, 6));

// More than any buffer of the system's holds, both ways at once between all: whoever only sent would wait for ever.
TEST(Tcp, EverybodySendsALotAtOnce) {
  constexpr std::size_t kBytes = 24 << 20;
  expect_no_errors(run_ranks(3, [](Communicator& group) {
    const std::vector<std::byte> mine(kBytes, std::byte(group.rank() + 1));
    std::vector<std::vector<std::byte>> theirs(3, std::vector<std::byte>(kBytes));
    std::vector<std::unique_ptr<Transfer>> transfers;
    for (int r = 0; r < 3; ++r)
      if (r != group.rank()) transfers.push_back(group.start_send(r, mine));
    for (int r = 0; r < 3; ++r)
      if (r != group.rank()) transfers.push_back(group.start_receive(r, theirs[static_cast<std::size_t>(r)]));
    for (auto& transfer : transfers) transfer->wait();
    for (int r = 0; r < 3; ++r)
      if (r != group.rank()) {
        EXPECT_EQ(theirs[static_cast<std::size_t>(r)], std::vector<std::byte>(kBytes, std::byte(r + 1)));
      }
  }));
}

// Nobody else gets the processor if whoever waits keeps it, also while messages lie there that nobody has asked for yet.
TEST(Tcp, WhoeverWaitsSleeps) {
  expect_no_errors(run_ranks(3, [](Communicator& group) {
    std::vector<float> values(group.rank() == 2 ? 300 : 100000, 1.0f);
    std::byte unasked[1000] = {};
    if (group.rank() == 2) {
      std::this_thread::sleep_for(milliseconds(400));
      group.broadcast(unasked, 2);
      return group.sum(std::span(values).first(100));
    }
    if (group.rank() == 1) return group.broadcast(unasked, 2), group.sum(std::span(values).first(100));
    const double before = thread_seconds();
    group.broadcast(unasked, 2);
    EXPECT_LT(thread_seconds() - before, 0.1);
    group.sum(std::span(values).first(100));
  }));
}

TEST(Tcp, RanksWhoseCallsDifferStop) {
  const auto errors = run_ranks(
      2,
      [](Communicator& group) {
        std::byte bytes[4] = {};
        const std::span<const std::byte> none_sent[2], send[] = {{}, bytes};
        const std::span<std::byte> none_received[2], receive[] = {bytes, {}};
        if (group.rank() == 1) group.all_to_all(none_sent, none_received);
        if (group.rank() == 1)
          group.all_to_all(none_sent, receive);
        else
          group.all_to_all(send, none_received);
        group.all_to_all(none_sent, none_received);
      },
      milliseconds(1000));
  EXPECT_EQ(errors[1], "rank 1: receiving 4 bytes from rank 0: it is at its call 1 and this rank at 2");
}

TEST(Tcp, RanksWhoseLengthsDifferStop) {
  const auto errors = run_ranks(
      2,
      [](Communicator& group) {
        std::byte bytes[300] = {};
        group.broadcast(std::span(bytes).first(group.rank() == 0 ? 300 : 200), 0);
        group.broadcast(bytes, 1);
      },
      milliseconds(1000));
  EXPECT_EQ(errors[1], "rank 1: receiving 200 bytes from rank 0: it sent 300");
  EXPECT_NE(errors[0], "");
}

TEST(Tcp, ARankThatLeavesIsNamedAtOnce) {
  for (const bool broadcast : {false, true}) {
    const auto start = Clock::now();
    const auto errors = run_ranks(4, [&](Communicator& group) {
      std::vector<float> values(1 << 20, 1.0f);
      group.sum(std::span(values));
      if (group.rank() == 2) return;
      if (broadcast)
        group.broadcast(std::as_writable_bytes(std::span(values)), 2);
      else
        group.sum(std::span(values));
    });
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
    for (const int r : {0, 1, 3}) {
      const std::string& error = errors[static_cast<std::size_t>(r)];
      EXPECT_TRUE(error.starts_with("rank " + std::to_string(r) + ": ") &&
                  error.ends_with("connection closed by peer"))
          << error;
    }
  }
}

TEST(Tcp, ARankThatAbandonsReleasesTheOthers) {
  const auto start = Clock::now();
  const auto errors = run_ranks(3, [&](Communicator& group) {
    float one = 1;
    group.sum(std::span(&one, 1));
    if (group.rank() == 2) group.abandon("out of luck");
    group.sum(std::span(&one, 1));
  });
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(errors[2], "rank 2 is out of step with the others since: out of luck");
  for (const std::size_t r : {0, 1})
    EXPECT_TRUE(errors[r].ends_with("connection closed by peer")) << errors[r];
}

// The time is that in which nothing moves, so a slow message may take longer.
TEST(Tcp, ARankThatHangsIsNamedAfterTheTimeout) {
  std::promise<void> released;
  const auto wait = released.get_future().share();
  const auto errors = run_ranks(
      2,
      [&](Communicator& group) {
        std::byte bytes[8] = {};
        group.broadcast(bytes, 1);
        if (group.rank() == 1) return wait.wait();
        const auto start = Clock::now();
        EXPECT_THROW(
            {
              try {
                group.broadcast(bytes, 1);
              } catch (const Error& error) {
                EXPECT_STREQ(error.what(), "rank 0: receiving 8 bytes from rank 1: timed out waiting 700ms");
                throw;
              }
            },
            Error);
        EXPECT_GE(Clock::now() - start, milliseconds(690));
        EXPECT_LT(Clock::now() - start, milliseconds(2500));
        released.set_value();
      },
      milliseconds(700));
  expect_no_errors(errors);
}

// A message that is given up cannot be followed by another on the same connection.
TEST(Tcp, WhatWasGivenUpEndsTheConnection) {
  const auto errors = run_ranks(
      2,
      [](Communicator& group) {
        std::byte bytes[16] = {};
        if (group.rank() == 1) return group.broadcast(bytes, 0);
        group.start_receive(1, bytes).reset();
        group.start_receive(1, bytes)->wait();
      },
      milliseconds(1000));
  EXPECT_EQ(errors[0], "rank 0: receiving 16 bytes from rank 1: an earlier message was given up");
}

// A stranger who is silent, one who talks nonsense and one who knows all but the secret keep nobody out.
TEST(Tcp, StrangersAreHungUpOn) {
  Board board;
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  std::vector<UniqueFd> strangers;
  auto first = std::async(std::launch::async, [&] {
    TcpCommunicator group(0, connect_ranks(0, 2, "127.0.0.1", board.of_a_rank(), deadline),
                          milliseconds(5000));
    contract::sum_adds_in_rank_order(group);
  });
  std::istringstream notice(board.of_a_rank().find("listens/0", deadline));
  std::string address;
  int port = 0;
  notice >> address >> port;
  for (const std::string& text : {std::string(), std::string(100, 'x'),
                                  "accordion-rank-1" + std::string(16, '\0') + "\1" + std::string(7, '\0')}) {
    strangers.push_back(connect_to(address, port, deadline));
    ASSERT_EQ(::send(strangers.back().get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  TcpCommunicator second(1, connect_ranks(1, 2, "127.0.0.1", board.of_a_rank(), deadline),
                         milliseconds(5000));
  contract::sum_adds_in_rank_order(second);
  first.get();
  EXPECT_LT(Clock::now(), deadline);
  // Nobody listens any more.
  EXPECT_THROW(connect_to(address, port, Clock::now() + milliseconds(100)), Error);
}

// What connecting came to for a rank of two: "" or the error.
std::string outcome_of(int rank, Board& board, Deadline deadline) {
  try {
    connect_ranks(rank, 2, "127.0.0.1", board.of_a_rank(), deadline);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// What rank 1 would tell rank 0, and where.
struct Introduction {
  explicit Introduction(const std::string& text) {
    std::uint64_t words[3] = {0, 0, 1};
    std::istringstream notice(text);
    notice >> address >> port >> std::hex >> words[0] >> words[1];
    hello = "accordion-rank-1" + std::string(reinterpret_cast<const char*>(words), sizeof words);
  }
  std::string address, hello;
  int port = 0;
};

// The libraries of a script have handlers for signals, of a child that ends, say.
TEST(Tcp, SignalsEndNoMeeting) {
  struct sigaction before {
  }, handled{};
  handled.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &handled, &before), 0);
  Board board;
  std::string outcome = "not yet";
  std::atomic<bool> over = false;
  std::thread first([&] {
    outcome = outcome_of(0, board, Clock::now() + std::chrono::seconds(10));
    over = true;
    while (over) std::this_thread::yield();  // A thread that has ended takes no signals.
  });
  board.of_a_rank().find("listens/0", Clock::now() + std::chrono::seconds(5));
  const auto interrupt = [&] {
    for (int i = 0; i < 20; ++i, std::this_thread::sleep_for(milliseconds(5)))
      ::pthread_kill(first.native_handle(), SIGUSR1);
  };
  interrupt();
  EXPECT_FALSE(over);
  EXPECT_EQ(outcome_of(1, board, Clock::now() + std::chrono::seconds(5)), "");
  while (!over) std::this_thread::yield();
  over = false;
  first.join();
  EXPECT_EQ(outcome, "");
  ::sigaction(SIGUSR1, &before, nullptr);
}

// On a link that loses packets, a rank that has connected may take seconds to say who it is, and say it in pieces.
TEST(Tcp, ARankMayTakeItsTimeToIntroduceItself) {
  Board board;
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  auto first = std::async(std::launch::async, [&] { return outcome_of(0, board, deadline); });
  const Introduction mine(board.of_a_rank().find("listens/0", deadline));
  const UniqueFd socket = connect_to(mine.address, mine.port, deadline);
  ASSERT_EQ(::send(socket.get(), mine.hello.data(), 17, MSG_NOSIGNAL), 17);
  std::this_thread::sleep_for(milliseconds(2300));
  ASSERT_EQ(::send(socket.get(), mine.hello.data() + 17, 23, MSG_NOSIGNAL), 23);
  EXPECT_EQ(first.get(), "");
}

// Callers who keep silent give way to others, and callers without end do not keep a rank beyond its time.
TEST(Tcp, ManyStrangersKeepNobodyOut) {
  Board board;
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  auto first = std::async(std::launch::async, [&] { return outcome_of(0, board, deadline); });
  const Introduction mine(board.of_a_rank().find("listens/0", deadline));
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(connect_to(mine.address, mine.port, deadline));
  EXPECT_EQ(outcome_of(1, board, deadline), "");
  EXPECT_EQ(first.get(), "");
}

TEST(Tcp, StrangersWithoutEndDoNotMoveTheDeadline) {
  Board board;
  const auto deadline = Clock::now() + milliseconds(400);
  auto first = std::async(std::launch::async, [&] { return outcome_of(0, board, deadline); });
  const Introduction mine(board.of_a_rank().find("listens/0", deadline));
  while (first.wait_for(milliseconds(0)) != std::future_status::ready) {
    ASSERT_LT(Clock::now(), deadline + std::chrono::seconds(3));
    try {
      connect_to(mine.address, mine.port, Clock::now() + milliseconds(10));
    } catch (const Error&) {
      // It has gone.
    }
  }
  EXPECT_EQ(first.get(), "rank 0: connecting to rank 1: it did not connect in time");
}

TEST(Tcp, ARankThatCanOpenNoMoreSaysSo) {
  Board board;
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  auto first = std::async(std::launch::async, [&] { return outcome_of(0, board, deadline); });
  const Introduction mine(board.of_a_rank().find("listens/0", deadline));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);  // The lowest that is free.
  ::close(next);
  rlimit one_more = before;
  one_more.rlim_cur = static_cast<rlim_t>(next) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one_more), 0);
  const UniqueFd caller = connect_to(mine.address, mine.port, deadline);
  const bool ended = first.wait_for(std::chrono::seconds(3)) == std::future_status::ready;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(ended);
  EXPECT_EQ(first.get(), "rank 0: connecting to rank 1: cannot take its call: Too many open files");
}

// A rank that says where it listens does listen there. So nobody there means another machine's address, or that it has gone.
TEST(Tcp, WhereNobodyListensIsSaidAtOnce) {
  Board board;
  const auto start = Clock::now();
  const int port = port_of(listen_at("127.0.0.1", 0));
  board.of_a_rank().write("listens/0", "127.0.0.1 " + std::to_string(port) + " 1 2");
  EXPECT_EQ(outcome_of(1, board, start + std::chrono::seconds(20)),
            "rank 1: connecting to rank 0: waited 0 s for 127.0.0.1:" + std::to_string(port) +
                ": Connection refused; if it is on another machine, name the network between them with "
                "--interface, in "
                "Python with GLOO_SOCKET_IFNAME");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
}

TEST(Tcp, SaysWhoDidNotCome) {
  Board board;
  EXPECT_EQ(outcome_of(1, board, Clock::now() + milliseconds(100)),
            "rank 1: connecting to rank 0: nobody wrote listens/0");
}

// A loader's workers, say: what they throw away is their parent's.
TEST(Tcp, AForkedProcessHangsUpOnNobody) {
  expect_no_errors(run_ranks(2, [](Communicator& group) {
    float one = 1;
    if (group.rank() == 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        static_cast<TcpCommunicator&>(group).~TcpCommunicator();
        ::_exit(0);
      }
      ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    }
    group.sum(std::span(&one, 1));
    EXPECT_EQ(one, 2);
  }));
}

TEST(Tcp, SaysWhoDidNotConnect) {
  Board board;
  EXPECT_THROW(
      {
        try {
          connect_ranks(0, 3, "127.0.0.1", board.of_a_rank(), Clock::now() + milliseconds(200));
        } catch (const Error& error) {
          EXPECT_STREQ(error.what(), "rank 0: connecting to rank 1: it did not connect in time");
          throw;
        }
      },
      Error);
}

}  // namespace
}  // namespace accordion
