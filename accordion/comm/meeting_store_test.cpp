#include "accordion/comm/meeting_store.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>

#include "accordion/base/error.h"
#include "accordion/base/refusal_testing.h"
#include "accordion/launch/free_port.h"

namespace accordion {
namespace {

using std::chrono::milliseconds;

Deadline soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(5);
}

MeetingStoreClient client(int port, milliseconds patience = std::chrono::seconds(5)) {
  return {"127.0.0.1", port, soon(), patience};
}

TEST(MeetingStore, KeepsWhatAllWrite) {
  const int port = free_port();
  const MeetingStoreHost host({"127.0.0.1"}, port);
  EXPECT_EQ(host.address(), "127.0.0.1");
  MeetingStoreClient one = client(port), other = client(port);
  EXPECT_EQ(one.get("a"), std::nullopt);
  one.set("a", "");
  EXPECT_EQ(other.get("a"), "");
  const std::string long_text(3'000'000, 'x');  // Longer than what a socket holds.
  other.set("a", long_text);
  EXPECT_EQ(one.get("a"), long_text);
  EXPECT_EQ(one.add("n", 5), 5);
  EXPECT_EQ(other.add("n", -7), -2);
  EXPECT_TRUE(one.erase("a"));
  EXPECT_FALSE(other.erase("a"));
  EXPECT_EQ(other.get("a"), std::nullopt);
}

TEST(MeetingStore, ListensOnTheFirstAddressThatItHas) {
  const int port = free_port();
  const MeetingStoreHost host({"192.0.2.1", "127.0.0.1", "0.0.0.0"}, port);
  EXPECT_EQ(host.address(), "127.0.0.1");
  EXPECT_NE(refusal([&] { MeetingStoreHost({"127.0.0.1"}, port); }).find("Address already in use"),
            std::string::npos);
  const std::vector<std::string> named = addresses_to_meet("192.0.2.7", ""),
                                 on_lo = addresses_to_meet("127.0.1.1", "lo");
  EXPECT_EQ(named, (std::vector<std::string>{"192.0.2.7", "::", "0.0.0.0"}));
  EXPECT_EQ(on_lo.front(), "127.0.0.1");
  EXPECT_EQ(std::count(on_lo.begin(), on_lo.end(), "0.0.0.0"), 0) << "nothing beyond the interface";
}

TEST(MeetingStore, HangsUpOnWhoeverSpeaksSomethingElse) {
  const int port = free_port();
  const MeetingStoreHost host({"127.0.0.1"}, port);
  MeetingStoreClient honest = client(port);
  for (const std::string& nonsense : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(8, '\xff'),
                                      std::string("\1\0\0\0\x7f", 5), std::string("\3\0\0\0\1\xff\xff", 7)}) {
    const UniqueFd socket = connect_to("127.0.0.1", port, soon());
    ASSERT_GT(::send(socket.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL), 0);
    char byte;
    ssize_t got = -1;
    for (int i = 0; i < 500 && (got = ::recv(socket.get(), &byte, 1, 0)) < 0; ++i)
      std::this_thread::sleep_for(milliseconds(10));
    EXPECT_EQ(got, 0) << "it should have hung up";
  }
  honest.set("a", "b");
  EXPECT_EQ(honest.get("a"), "b") << "the others are still served";
}

TEST(MeetingStore, SaysThatItIsGoneOrMute) {
  const int port = free_port();
  auto host = std::make_unique<MeetingStoreHost>(std::vector<std::string>{"127.0.0.1"}, port);
  MeetingStoreClient left = client(port);
  host.reset();
  EXPECT_TRUE(refusal([&] { left.get("a"); }).starts_with("the ranks' store "));
  const UniqueFd mute = listen_at("127.0.0.1", port);
  MeetingStoreClient waiting = client(port, milliseconds(200));
  EXPECT_EQ(refusal([&] { waiting.get("a"); }), "the ranks' store does not answer");
}

}  // namespace
}  // namespace accordion
