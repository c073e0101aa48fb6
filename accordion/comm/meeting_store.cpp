#include "accordion/comm/meeting_store.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <list>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using std::chrono::milliseconds;

// Gloo's longest text grows with the number of ranks; this is far beyond that of a million.
constexpr std::uint32_t kLongestMessage = 256 << 20;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

template <class Number>
void append(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <class Number>
Number take(std::string_view& text, const char* what) {
  Number number;
  if (text.size() < sizeof number) throw Error(std::string("a request to the store ends within its ") + what);
  std::memcpy(&number, text.data(), sizeof number);
  text.remove_prefix(sizeof number);
  return number;
}

std::string reply(bool done, std::string_view value = {}) {
  std::string text(1, done ? '\1' : '\0');
  return text.append(value);
}

std::string with_length(std::string_view message) {
  std::string text;
  append(text, static_cast<std::uint32_t>(message.size()));
  return text.append(message);
}

// The first whole message of `received`, which is taken off it.
std::optional<std::string> take_message(std::string& received) {
  std::uint32_t length = 0;
  if (received.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, received.data(), sizeof length);
  if (length > kLongestMessage)
    throw Error("a message of " + std::to_string(length) + " bytes, expected at most " +
                std::to_string(kLongestMessage));
  if (received.size() - sizeof length < length) return std::nullopt;
  std::string message = received.substr(sizeof length, length);
  received.erase(0, sizeof length + length);
  return message;
}

struct Caller {
  UniqueFd socket;
  std::string received = {}, to_send = {};
};

// Hears and answers what can be without waiting. False where the caller has gone or speaks something else.
bool attend(Caller& caller, MeetingTable& table) {
  std::array<char, 1 << 16> chunk;
  while (true) {
    const ssize_t got = ::recv(caller.socket.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) return false;
    if (got < 0) break;
    caller.received.append(chunk.data(), static_cast<std::size_t>(got));
  }
  try {
    while (const auto request = take_message(caller.received))
      caller.to_send += with_length(table.answer(*request));
  } catch (const Error&) {
    return false;
  }
  while (!caller.to_send.empty()) {
    const ssize_t sent = ::send(caller.socket.get(), caller.to_send.data(), caller.to_send.size(),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent < 0) return false;
    caller.to_send.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

std::string MeetingTable::answer(std::string_view request) {
  const auto operation = static_cast<StoreOperation>(take<std::uint8_t>(request, "operation"));
  const auto key_length = take<std::uint16_t>(request, "key's length");
  if (request.size() < key_length) throw Error("a request to the store ends within its key");
  const std::string_view key = request.substr(0, key_length);
  request.remove_prefix(key_length);
  const auto found = texts_.find(key);
  const bool there = found != texts_.end();
  const auto put = [&](std::string_view value) {
    bytes_ += value.size() + (there ? 0 : key.size()) - (there ? found->second.size() : 0);
    if (bytes_ > kMostBytes)
      throw Error("the store holds more than " + std::to_string(kMostBytes) + " bytes");
    texts_.insert_or_assign(std::string(key), std::string(value));
  };
  switch (operation) {
    case StoreOperation::kGet:
      return reply(there, there ? std::string_view(found->second) : std::string_view());
    case StoreOperation::kSet:
      put(request);
      return reply(true);
    case StoreOperation::kAdd: {
      std::uint64_t sum = take<std::uint64_t>(request, "number");  // Wraps around, whatever its sign.
      if (std::string_view before = there ? std::string_view(found->second) : ""; !before.empty())
        sum += take<std::uint64_t>(before, "number");
      std::string text;
      append(text, sum);
      put(text);
      return reply(true, text);
    }
    case StoreOperation::kErase:
      if (there) {
        bytes_ -= found->first.size() + found->second.size();
        texts_.erase(found);
      }
      return reply(there);
  }
  throw Error("a request to the store for operation " + std::to_string(static_cast<int>(operation)));
}

std::string store_request(StoreOperation operation, std::string_view key, std::string_view value) {
  if (key.size() > UINT16_MAX || value.size() > kLongestMessage - UINT16_MAX - 3)
    throw Error("the store takes no key of " + std::to_string(key.size()) + " bytes with a value of " +
                std::to_string(value.size()));
  std::string text;
  append(text, static_cast<std::uint8_t>(operation));
  append(text, static_cast<std::uint16_t>(key.size()));
  return text.append(key).append(value);
}

MeetingStoreHost::MeetingStoreHost(const std::vector<std::string>& addresses, int port) {
  std::string reasons;
  for (const std::string& address : addresses) try {
      listener_ = listen_at(address, port);
      address_ = address;
      break;
    } catch (const Error& error) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
    }
  if (!listener_.is_open()) throw Error(reasons.empty() ? "no address to listen on" : reasons);
  thread_ = std::thread([this] { serve(); });
}

MeetingStoreHost::~MeetingStoreHost() {
  closing_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);  // Wakes the thread.
  thread_.join();
}

void MeetingStoreHost::serve() {
  MeetingTable table;
  std::list<Caller> callers;
  while (!closing_) {
    std::vector<pollfd> waits = {{listener_.get(), POLLIN, 0}};
    for (const Caller& caller : callers)
      waits.push_back(
          {caller.socket.get(), static_cast<short>(caller.to_send.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    std::size_t i = 0;
    for (auto caller = callers.begin(); caller != callers.end();)
      caller = waits[++i].revents == 0 || attend(*caller, table) ? std::next(caller) : callers.erase(caller);
    if (waits[0].revents == 0) continue;
    if (UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); socket.is_open())
      callers.push_back({.socket = std::move(socket)});
  }
}

MeetingStoreClient::MeetingStoreClient(const std::string& address, int port, Deadline deadline,
                                       milliseconds patience)
    : socket_(connect_to(address, port, deadline)), patience_(patience) {}

void MeetingStoreClient::fail(const std::string& what) {
  throw Error("the ranks' store " + what);
}

std::optional<std::string> MeetingStoreClient::ask(StoreOperation operation, std::string_view key,
                                                   std::string_view value) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience_;
  const auto await = [&](short event) {
    pollfd wait{.fd = socket_.get(), .events = event, .revents = 0};
    if (!poll_until(std::span(&wait, 1), deadline)) fail("does not answer");
  };
  const std::string message = with_length(store_request(operation, key, value));
  for (std::string_view rest = message; !rest.empty();) {
    await(POLLOUT);
    const ssize_t sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && !may_be_tried_again()) fail(std::string("cannot be reached: ") + std::strerror(errno));
    if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string received;
  std::array<char, 1 << 16> chunk;
  while (true) {
    if (auto answer = take_message(received)) {
      if (answer->empty() || !received.empty()) fail("answers something else");
      if ((*answer)[0] == '\0') return std::nullopt;
      return answer->substr(1);
    }
    await(POLLIN);
    const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got == 0) fail("has gone");
    if (got < 0 && !may_be_tried_again()) fail(std::string("cannot be reached: ") + std::strerror(errno));
    if (got > 0) received.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

std::optional<std::string> MeetingStoreClient::get(std::string_view key) {
  return ask(StoreOperation::kGet, key, {});
}

void MeetingStoreClient::set(std::string_view key, std::string_view value) {
  ask(StoreOperation::kSet, key, value);
}

std::int64_t MeetingStoreClient::add(std::string_view key, std::int64_t value) {
  std::string text;
  append(text, value);
  const std::string sum = ask(StoreOperation::kAdd, key, text).value_or("");
  if (sum.size() != sizeof value) fail("answers something else");
  std::memcpy(&value, sum.data(), sizeof value);
  return value;
}

bool MeetingStoreClient::erase(std::string_view key) {
  return ask(StoreOperation::kErase, key, {}).has_value();
}

std::vector<std::string> addresses_to_meet(const std::string& host, const std::string& interface) {
  std::vector<std::string> addresses;
  for (const std::string& address : addresses_of(host))
    if (!is_loopback(address)) addresses.push_back(address);
  if (!interface.empty())
    for (const std::string& address : interface_addresses(interface)) addresses.push_back(address);
  if (interface.empty()) addresses.insert(addresses.end(), {"::", "0.0.0.0"});
  return addresses;
}

}  // namespace accordion
