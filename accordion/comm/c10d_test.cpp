// Ranks are threads here, each with a store client and connections of its own, as if they were processes.
#include "accordion/comm/c10d.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/comm/c10d_compat.h"
#include "accordion/comm/c10d_group.h"
#include "accordion/comm/communicator_contract.h"
#include "accordion/comm/rendezvous.h"

namespace accordion {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Holds a port of the system's choice until released.
class HeldPort {
 public:
  HeldPort() : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), length), 0);
    ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
    number = ntohs(address.sin_port);
  }
  ~HeldPort() { ::close(descriptor_); }
  void listen() { EXPECT_EQ(::listen(descriptor_, 5), 0); }

  int number = 0;

 private:
  int descriptor_;
};

int free_port() {
  return HeldPort().number;
}

Rendezvous local(int rank, int size, int port, milliseconds timeout = std::chrono::seconds(20)) {
  return {.rank = rank, .size = size, .port = port, .timeout = timeout};
}

// Runs each body in a thread of its own and returns what each threw, or "".
std::vector<std::string> run_all(const std::vector<std::function<void()>>& bodies) {
  std::vector<std::string> errors(bodies.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < bodies.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        bodies[i]();
      } catch (const Error& error) {
        errors[i] = error.what();
      } catch (const std::exception& error) {
        ADD_FAILURE() << "not an accordion::Error: " << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

std::vector<std::string> run_groups(int ranks, const std::function<void(Group&)>& body,
                                    milliseconds timeout = std::chrono::seconds(20),
                                    Transport transport = Transport::kGloo) {
  const int port = free_port();
  std::vector<std::function<void()>> bodies;
  for (int r = 0; r < ranks; ++r)
    bodies.push_back([=] {
      Rendezvous meeting = local(r, ranks, port, timeout);
      meeting.transport = transport;
      Group group = c10d_group(meeting);
      body(group);
    });
  return run_all(bodies);
}

void expect_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class C10dContract : public testing::TestWithParam<int> {};

TEST_P(C10dContract, Holds) {
  expect_no_errors(run_groups(GetParam(), [](Group& group) {
    for (const ContractCase& test : kContract) {
      SCOPED_TRACE(test.name);
      test.run(group.gradients());
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Ranks, C10dContract, testing::Range(1, 6));

TEST(Group, GradientsAndControlWorkAtTheSameTime) {
  for (const Transport transport : {Transport::kTcp, Transport::kGloo})
    expect_no_errors(run_groups(
        3,
        [](Group& group) {
          std::thread gradients([&] { contract::calls_keep_their_order(group.gradients()); });
          contract::calls_keep_their_order(group.control());
          gradients.join();
        },
        std::chrono::seconds(20), transport));
}

TEST(Group, StandsOnGroupsThatExist) {
  expect_no_errors(run_groups(2, [](Group& first) {
    Group second = c10d_group(control_process_group(first), control_process_group(first));
    EXPECT_EQ(&second.gradients(), &second.control());
    EXPECT_EQ(second.rank(), first.rank());
    contract::sum_adds_in_rank_order(second.gradients());
  }));
}

TEST(Group, StandsOnAStoreThatExists) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  // Side by side in one store, as models of one program are, each under a prefix of its own.
  const std::pair<const char*, Transport> models[] = {
      {"first", Transport::kTcp}, {"second", Transport::kTcp}, {"third", Transport::kGloo}};
  for (const auto& [prefix, transport] : models) {
    std::vector<std::function<void()>> bodies;
    for (int r = 0; r < 2; ++r)
      bodies.push_back([=, prefix = prefix, transport = transport] {
        Group group = c10d_group({.store = store,
                                  .rank = r,
                                  .size = 2,
                                  .prefix = prefix,
                                  .interface = "lo",
                                  .timeout = std::chrono::seconds(5),
                                  .transport = transport});
        contract::sum_adds_in_rank_order(group.gradients());
        contract::sum_adds_in_rank_order(group.control());
      });
    expect_no_errors(run_all(bodies));
  }
}

// A store's own patience is that of whoever made it.
TEST(Group, WaitsAtAStoreAsLongAsItWasTold) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run_all({[&] {
    c10d_group(
        {.store = store, .rank = 1, .size = 2, .interface = "lo", .timeout = std::chrono::milliseconds(300)});
  }});
  EXPECT_EQ(errors[0], "rank 1: connecting to rank 0: it has not come");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Group, RanksOfDifferentBackEndsAreTold) {
  const int port = free_port();
  std::vector<std::function<void()>> bodies;
  for (int r = 0; r < 3; ++r)
    bodies.push_back([=] { r < 2 ? c10d_group(local(r, 3, port)) : gloo_group(local(r, 3, port)); });
  const auto errors = run_all(bodies);
  EXPECT_EQ(errors[0], "rank 0: was started with --backend tcp, but rank 2 with gloo");
  EXPECT_EQ(errors[1], "rank 1: was started with --backend tcp, but rank 2 with gloo");
  EXPECT_EQ(errors[2], "rank 2: was started with --backend gloo, but rank 0 with tcp");
}

// A launcher keeps its store when it starts the ranks again.
TEST(Group, MeetsAgainAtALaunchersStore) {
  c10d::TCPStoreOptions options;
  options.isServer = true;
  options.port = static_cast<std::uint16_t>(free_port());
  options.waitWorkers = false;
  compat::avoid_libuv(options);
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  const auto meet = [&](int restart) {
    std::vector<std::function<void()>> bodies;
    for (int r = 0; r < 2; ++r)
      bodies.push_back([=, port = options.port] {
        Rendezvous meeting = rendezvous_at({.rank = r,
                                            .world = 2,
                                            .address = "127.0.0.1",
                                            .port = port,
                                            .store_elsewhere = true,
                                            .restart = restart});
        meeting.timeout = std::chrono::seconds(5);
        Group group = c10d_group(meeting);
        contract::sum_adds_in_rank_order(group.gradients());
      });
    return run_all(bodies);
  };
  for (int restart = 0; restart < 3; ++restart) expect_no_errors(meet(restart));
  for (const std::string& error : meet(1)) EXPECT_TRUE(contains(error, "another process is rank")) << error;
}

TEST(Group, UsesTheInterfaceItIsGiven) {
  const int port = free_port();
  std::vector<std::function<void()>> bodies;
  for (int r = 0; r < 2; ++r)
    bodies.push_back([=] {
      Rendezvous meeting = local(r, 2, port);
      meeting.interface = "lo";
      Group group = c10d_group(meeting);
      EXPECT_THROW(control_process_group(group), UsageError);  // It is none of torch's.
      contract::broadcast_comes_from_every_root(group.gradients());
    });
  expect_no_errors(run_all(bodies));
}

TEST(Group, SaysWhoDidNotCome) {
  const int port = free_port();
  const auto start = Clock::now();
  const auto errors = run_all({[&] { c10d_group(local(0, 4, port, milliseconds(1000))); },
                               [&] { c10d_group(local(1, 4, port, milliseconds(1000))); }});
  EXPECT_LT(Clock::now() - start, milliseconds(3000));
  EXPECT_EQ(errors[0], "rank 0: waited 1 s for 4 ranks at 127.0.0.1:" + std::to_string(port) +
                           "; ranks 2, 3 did not come");
  // Rank 0's store may go a moment earlier.
  EXPECT_TRUE(contains(errors[1], "rank 1: ") && contains(errors[1], "ranks 2, 3 ")) << errors[1];
}

TEST(Group, SaysThatTheStoreDidNotCome) {
  const int port = free_port();
  const auto errors = run_all({[&] { c10d_group(local(1, 2, port, milliseconds(1000))); }});
  EXPECT_EQ(
      errors[0],
      "rank 1: waited 1 s for 127.0.0.1:" + std::to_string(port) +
          ": Connection refused; MASTER_ADDR and MASTER_PORT must name the machine of rank 0 and a free "
          "port there");
}

TEST(Group, SaysThatTheStoreDoesNotAnswer) {
  HeldPort mute;
  mute.listen();
  const auto start = Clock::now();
  const auto errors = run_all({[&] { c10d_group(local(1, 2, mute.number, milliseconds(1000))); }});
  EXPECT_LT(Clock::now() - start, milliseconds(4000));
  EXPECT_EQ(errors[0], "rank 1: 127.0.0.1:" + std::to_string(mute.number) +
                           " is not rank 0 of this run: it does not answer");
}

TEST(Group, SaysThatALaunchersStoreDoesNotAnswer) {
  HeldPort mute;
  mute.listen();
  Rendezvous meeting = local(1, 2, mute.number, milliseconds(1000));
  meeting.store_elsewhere = true;
  const auto errors = run_all({[&] { c10d_group(meeting); }});
  EXPECT_TRUE(errors[0].starts_with("rank 1: the store at 127.0.0.1:" + std::to_string(mute.number) + ": "))
      << errors[0];
}

TEST(Group, SaysThatThePortIsTaken) {
  HeldPort other;
  other.listen();
  EXPECT_EQ(run_all({[&] { c10d_group(local(0, 2, other.number, milliseconds(1000))); }})[0],
            "rank 0: port " + std::to_string(other.number) +
                " on 127.0.0.1 is taken; choose another with MASTER_PORT or --port");
}

TEST(Group, SaysThatTheHostDoesNotExist) {
  for (int rank : {0, 1}) {
    Rendezvous meeting = local(rank, 2, free_port(), milliseconds(1000));
    meeting.address = "nowhere.invalid";
    const std::string error = run_all({[&] { Group group = c10d_group(meeting); }})[0];
    EXPECT_TRUE(
        contains(error, "rank " + std::to_string(rank) + ": cannot find the host \"nowhere.invalid\""))
        << error;
  }
}

TEST(Group, SaysThatTwoProcessesHaveOneRank) {
  const int port = free_port();
  const auto errors = run_all({[&] { c10d_group(local(0, 3, port, milliseconds(1000))); },
                               [&] { c10d_group(local(1, 3, port, milliseconds(1000))); },
                               [&] { c10d_group(local(1, 3, port, milliseconds(1000))); }});
  EXPECT_TRUE(contains(errors[1] + errors[2], "rank 1: another process is rank 1 "))
      << errors[1] << errors[2];
}

TEST(Group, SaysThatRanksCountDifferently) {
  const int port = free_port();
  const auto errors = run_all({[&] { c10d_group(local(0, 2, port, milliseconds(1000))); },
                               [&] { c10d_group(local(1, 3, port, milliseconds(1000))); }});
  EXPECT_EQ(errors[0], "rank 0: was started as one of 2 ranks, but rank 1 as one of 3");
}

TEST(Group, ABrokenPipeIsAnErrorAndNoEnd) {
  ::signal(SIGPIPE, SIG_DFL);
  const Group group = gloo_group(Rendezvous{});
  struct sigaction now {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
}

TEST(Group, RefusesWhatCannotBe) {
  auto refusal = [](Rendezvous meeting) {
    try {
      Group group = c10d_group(meeting);
      return std::string();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal({.rank = 2, .size = 2}), "rendezvous: rank=2, expected [0, 2)");
  EXPECT_EQ(refusal({.rank = -1, .size = 2, .timeout = milliseconds(1000)}),
            "rendezvous: rank=-1, expected [0, 2)");
  EXPECT_EQ(refusal({.port = 0}), "rendezvous: port=0, expected [1, 65535]");
  EXPECT_EQ(refusal({.size = 0}), "rendezvous: size=0, expected at least 1");
  EXPECT_EQ(refusal({.port = 70000}), "rendezvous: port=70000, expected [1, 65535]");
  EXPECT_EQ(refusal({.timeout = milliseconds(0)}), "rendezvous: timeout=0 ms, expected above 0");
  EXPECT_TRUE(refusal({.interface = "ether9"}).starts_with("rendezvous: unknown interface \"ether9\""));
}

// Rank 1 makes a call more, in which nobody sends anything: what rank 0 sends in its first call is not what rank 1
// waits for in its second.
TEST(C10d, RanksWhoseCallsDifferStop) {
  const auto errors = run_groups(
      2,
      [](Group& group) {
        std::byte bytes[4] = {};
        const std::span<const std::byte> none_sent[2], send[] = {{}, bytes};
        const std::span<std::byte> none_received[2], receive[] = {bytes, {}};
        if (group.rank() == 1) group.gradients().all_to_all(none_sent, none_received);
        if (group.rank() == 1)
          group.gradients().all_to_all(none_sent, receive);
        else
          group.gradients().all_to_all(send, none_received);
      },
      milliseconds(1000));
  for (const std::string& error : errors) EXPECT_NE(error, "");
}

// Rank 2 takes part once and goes; the others are in the middle of a large sum or broadcast.
TEST(C10d, ARankThatLeavesIsNamedAtOnce) {
  for (bool broadcast : {false, true}) {
    const auto start = Clock::now();
    const auto errors = run_groups(3, [&](Group& group) {
      std::vector<float> values(1 << 20, 1.0f);
      group.gradients().sum(std::span(values));
      if (group.rank() == 2) return;
      if (broadcast)
        group.gradients().broadcast(std::as_writable_bytes(std::span(values)), 2);
      else
        group.gradients().sum(std::span(values));
    });
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
    EXPECT_EQ(errors[2], "");
    for (int r = 0; r < 2; ++r) {
      const std::string& error = errors[static_cast<std::size_t>(r)];
      EXPECT_TRUE(error.starts_with("rank " + std::to_string(r) + ": ")) << error;
      EXPECT_TRUE(contains(error, " rank ") && contains(error, "peer")) << error;
    }
  }
}

// What a rank that failed elsewhere owes the others: they need not wait for the timeout.
TEST(C10d, ARankThatAbandonsReleasesTheOthers) {
  const auto start = Clock::now();
  const auto errors = run_groups(3, [&](Group& group) {
    float one = 1;
    group.gradients().sum(std::span(&one, 1));
    if (group.rank() == 2) group.gradients().abandon("out of luck");
    group.gradients().sum(std::span(&one, 1));
  });
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(errors[2], "rank 2 is out of step with the others since: out of luck");
  for (int r = 0; r < 2; ++r)
    EXPECT_TRUE(contains(errors[static_cast<std::size_t>(r)], "peer")) << errors[static_cast<std::size_t>(r)];
}

// Counts what is handed to Gloo.
class CountingProcessGroup final : public c10d::ProcessGroup {
 public:
  explicit CountingProcessGroup(c10::intrusive_ptr<c10d::ProcessGroup> group)
      : c10d::ProcessGroup(group->getRank(), group->getSize()), group_(std::move(group)) {}
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
    return group_->send(tensors, to, tag);
  }
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int from, int tag) override {
    return group_->recv(tensors, from, tag);
  }
  std::uint64_t bytes = 0;

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

TEST(C10d, CountsWhatItHandsToTheNetwork) {
  for (int ranks : {1, 2, 3, 4})
    expect_no_errors(run_groups(ranks, [](Group& first) {
      const auto counting = c10::make_intrusive<CountingProcessGroup>(control_process_group(first));
      Group group = c10d_group(counting, counting);
      for (const ContractCase& test : kContract) test.run(group.gradients());
      EXPECT_EQ(group.gradients().sent_bytes(), counting->bytes);
      EXPECT_EQ(counting->bytes > 0, group.size() > 1);
    }));
}

TEST(C10d, ARankThatHangsIsNamedAfterTheTimeout) {
  std::mutex mutex;
  std::condition_variable changed;
  int released = 0;
  const auto errors = run_groups(
      3,
      [&](Group& group) {
        std::vector<float> values(100003, 1.0f);
        group.gradients().sum(std::span(values));
        if (group.rank() == 1) {
          std::unique_lock lock(mutex);
          EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return released == 2; }));
          return;
        }
        const auto start = Clock::now();
        std::string message;
        try {
          group.gradients().sum(std::span(values));
        } catch (const Error& error) {
          message = error.what();
        }
        EXPECT_TRUE(contains(message, " rank 1: timed out waiting 1000ms")) << message;
        EXPECT_LT(Clock::now() - start, milliseconds(3000));
        // Stays until both know: otherwise the second might report the first's departure.
        std::unique_lock lock(mutex);
        ++released;
        changed.notify_all();
        changed.wait_for(lock, std::chrono::seconds(10), [&] { return released == 2; });
      },
      milliseconds(1000));
  expect_no_errors(errors);
}

}  // namespace
}  // namespace accordion
