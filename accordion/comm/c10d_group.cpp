// The rendezvous: everyone writes its name into a store, waits until all names are there, and compares notes;
// only then are they connected, which by itself would wait in silence for whoever is missing.
#include "accordion/comm/c10d_group.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/names.h"
#include "accordion/comm/c10d.h"
#include "accordion/comm/c10d_compat.h"
#include "accordion/comm/c10d_error.h"
#include "accordion/comm/c10d_store.h"
#include "accordion/comm/local_store.h"
#include "accordion/comm/meeting_store.h"
#include "accordion/comm/sockets.h"
#include "accordion/comm/tcp.h"
#include "accordion/comm/tcp_meeting.h"

namespace accordion {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// Gloo writes to sockets that a peer may have closed, and a rank prints into a pipe that nobody may read any more. The signal
// for that would end this process without a word. A handler that the program has is left alone, and Python ignores the signal itself.
void ignore_broken_pipes() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

// The one that most others can reach: not one that means another machine there, or needs the name of an interface.
const std::string& best_of(const std::vector<std::string>& addresses) {
  const auto rank = [](const std::string& address) {
    return is_loopback(address) ? 2 : is_link_local(address) ? 1 : 0;
  };
  return *std::min_element(addresses.begin(), addresses.end(),
                           [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
}

// An interface's, or that of this host's name if this machine has it.
std::string address_of(const std::string& interface) {
  std::vector<std::string> addresses;
  if (!interface.empty()) {
    addresses = interface_addresses(interface);
    if (addresses.empty()) throw Error("the interface " + interface + " has no address");
    return best_of(addresses);
  }
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) == 0) {
    try {
      addresses = addresses_of(name.data());
      std::erase_if(addresses, [](const std::string& address) { return !has_address(address); });
    } catch (const Error&) {
      // A name that means nothing.
    }
  }
  return addresses.empty() ? "127.0.0.1" : best_of(addresses);
}

const char* name_of(Transport transport) {
  return transport == Transport::kTcp ? "tcp" : "gloo";
}

class Meeting {
 public:
  explicit Meeting(const Rendezvous& plan) : plan_(plan), deadline_(Clock::now() + plan.timeout) { check(); }

  // Finds the store and this machine's address on the way there.
  StorePtr enter();

  // Nobody needs the store any more. Collective.
  void leave_store(Communicator& control);

  // Returns when all ranks have entered and agree.
  void await_everyone(c10d::Store& store) const;

  // What the others reach this rank at.
  std::string address() const;

 private:
  bool hosts() const { return plan_.rank == 0 && !plan_.store_elsewhere; }
  std::string where() const { return plan_.address + ":" + std::to_string(plan_.port); }
  std::string key(int rank) const { return "rank/" + std::to_string(rank); }
  milliseconds time_left() const {
    return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()));
  }
  void prepare_to_host() const;
  std::string reach_store(const std::string& address) const;
  bool listens_everywhere() const { return host_->address() == "::" || host_->address() == "0.0.0.0"; }
  StorePtr open_store();
  StorePtr open_file();
  StorePtr open_own();
  StorePtr open_launchers();
  std::string local_path();
  std::string missing(c10d::Store& store) const;
  std::string disagreement(c10d::Store& store) const;
  void compare_notes(c10d::Store& store) const;
  void check() const;
  [[noreturn]] void fail(const std::string& what) const {
    throw Error("rank " + std::to_string(plan_.rank) + ": " + what);
  }
  std::string waited() const {
    std::ostringstream text;
    text << "waited " << std::chrono::duration<double>(plan_.timeout).count() << " s for ";
    return text.str();
  }

  const Rendezvous& plan_;
  const Deadline deadline_;
  std::string local_address_ = "127.0.0.1";
  std::optional<LocalStoreHost> local_host_;
  std::optional<MeetingStoreHost> host_;
};

void Meeting::check() const {
  auto refuse = [](const std::string& what) { throw UsageError("rendezvous: " + what); };
  if (plan_.size < 1) refuse("size=" + std::to_string(plan_.size) + ", expected at least 1");
  if (plan_.rank < 0 || plan_.rank >= plan_.size)
    refuse("rank=" + std::to_string(plan_.rank) + ", expected [0, " + std::to_string(plan_.size) + ")");
  if (plan_.port < 1 || plan_.port > 65535)
    refuse("port=" + std::to_string(plan_.port) + ", expected [1, 65535]");
  if (plan_.timeout <= milliseconds(0))
    refuse("timeout=" + std::to_string(plan_.timeout.count()) + " ms, expected above 0");
  if (!plan_.interface.empty()) {
    const std::vector<std::string> known = interface_names();
    if (std::find(known.begin(), known.end(), plan_.interface) == known.end())
      refuse(unknown_name("interface", plan_.interface, known));
  }
}

// What the store would only say to the terminal, or after the whole timeout.
void Meeting::prepare_to_host() const {
  if (const std::string reason = why_not_listen(plan_.port); !reason.empty())
    fail("port " + std::to_string(plan_.port) + " on " + plan_.address + " is " + reason +
         "; choose another with MASTER_PORT or --port");
  try {
    require_host(plan_.address);
  } catch (const Error& error) {
    fail(error.what() + std::string("; MASTER_ADDR must name this machine"));
  }
}

std::string Meeting::reach_store(const std::string& address) const {
  try {
    return local_address_towards(address, plan_.port, deadline_);
  } catch (const Error& error) {
    fail(error.what() + std::string("; MASTER_ADDR and MASTER_PORT must name ") +
         (plan_.store_elsewhere ? "the launcher's store" : "the machine of rank 0 and a free port there"));
  }
}

std::string Meeting::local_path() {
  try {
    if (!hosts()) return find_local_store(plan_.address, plan_.port, deadline_);
    local_host_.emplace(plan_.address, plan_.port);
    return local_host_->path();
  } catch (const Error& error) {
    fail(error.what());
  }
}

// All ranks are on this machine.
StorePtr Meeting::open_file() {
  auto file = c10::make_intrusive<c10d::FileStore>(local_path(), plan_.size);
  if (hosts()) local_address_ = reach_store(plan_.address);
  file->setTimeout(time_left());
  return file;
}

StorePtr Meeting::open_own() {
  try {
    if (hosts()) host_.emplace(addresses_to_meet(plan_.address, plan_.interface), plan_.port);
  } catch (const Error& error) {
    fail(error.what() + std::string("; MASTER_ADDR must name this machine"));
  }
  // Whoever listens on all addresses is met at the one that the others use.
  const std::string& address = hosts() && !listens_everywhere() ? host_->address() : plan_.address;
  if (hosts()) local_address_ = reach_store(address);
  try {
    return c10d_store(std::make_unique<MeetingStoreClient>(address, plan_.port, deadline_, time_left()),
                      time_left());
  } catch (const Error& error) {
    fail(error.what());
  }
}

// A launcher's: torch's own.
StorePtr Meeting::open_launchers() {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(plan_.port);
  options.numWorkers = static_cast<std::size_t>(plan_.size);
  options.waitWorkers = false;
  // The store counts in whole seconds.
  options.timeout = std::chrono::ceil<std::chrono::seconds>(time_left());
  compat::avoid_libuv(options);
  // torch 2.x waits without limit for the store's first answer. Whoever never gets it is left behind.
  std::promise<StorePtr> opened;
  std::future<StorePtr> store = opened.get_future();
  std::thread([opened = std::move(opened), address = plan_.address, options]() mutable {
    try {
      opened.set_value(c10::make_intrusive<c10d::TCPStore>(address, options));
    } catch (...) {
      opened.set_exception(std::current_exception());
    }
  }).detach();
  if (store.wait_for(options.timeout) != std::future_status::ready)
    fail("the store at " + where() + ": it does not answer");
  return store.get();
}

StorePtr Meeting::open_store() {
  // A client waits here for rank 0 to come: the store's own attempts are a second apart.
  if (!hosts()) local_address_ = reach_store(plan_.address);
  if (plan_.store_elsewhere) return open_launchers();
  return is_local(plan_.address) ? open_file() : open_own();
}

// Rank 0 must not take the store away before all have come this far, nor another look at it after that.
void Meeting::leave_store(Communicator& control) {
  std::int8_t done = 0;
  control.sum(std::span(&done, 1));
  local_host_.reset();
  host_.reset();
  control.sum(std::span(&done, 1));
}

StorePtr Meeting::enter() {
  if (plan_.size == 1) return c10::make_intrusive<c10d::HashStore>();
  if (hosts()) prepare_to_host();
  try {
    auto store = c10::make_intrusive<c10d::PrefixStore>(plan_.prefix, open_store());
    // Answered at once by a living store, and the only call with a time limit, which then holds for the later
    // ones.
    store->set("hello", std::vector<std::uint8_t>());
    store->wait({"hello"}, time_left());
    if (store->add("seat/" + std::to_string(plan_.rank), 1) > 1)
      fail("another process is rank " + std::to_string(plan_.rank) + " of the store at " + where());
    const std::string note = std::to_string(plan_.size) + " " +
                             (plan_.interface.empty() ? local_address_ : plan_.interface) + " " +
                             name_of(plan_.transport);
    store->set(key(plan_.rank), std::vector<std::uint8_t>(note.begin(), note.end()));
    return store;
  } catch (const Error&) {
    throw;
  } catch (...) {
    fail("the store at " + where() + ": " + reason_of_current_exception());
  }
}

std::string Meeting::missing(c10d::Store& store) const {
  std::string list;
  int count = 0;
  for (int r = 0; r < plan_.size; ++r)
    if (!store.check({key(r)})) {
      list += (count++ ? ", " : "") + std::to_string(r);
    }
  return (count == 1 ? "rank " : "ranks ") + list;
}

void Meeting::await_everyone(c10d::Store& store) const {
  if (plan_.size == 1) return;
  const std::string everyone = std::to_string(plan_.size) + " ranks at " + where();
  std::string absent;
  try {
    std::vector<std::string> keys;
    for (int r = 0; r < plan_.size; ++r) keys.push_back(key(r));
    while (!store.check(keys) && Clock::now() < deadline_) {
      absent = missing(store);
      std::this_thread::sleep_for(milliseconds(10));
    }
    if (store.check(keys)) return compare_notes(store);
    absent = missing(store);
  } catch (const Error&) {
    throw;
  } catch (...) {
    fail("lost the store while waiting for " + everyone + "; " + absent + " had not come (" +
         reason_of_current_exception() + ")");
  }
  fail(waited() + everyone + "; " + absent + " did not come");
}

// What would otherwise end in a silent wait, or nothing.
std::string Meeting::disagreement(c10d::Store& store) const {
  int theirs = 0;
  for (int r = 0; r < plan_.size; ++r) {
    const std::vector<std::uint8_t> bytes = store.get(key(r));
    std::istringstream note(std::string(bytes.begin(), bytes.end()));
    std::string address, transport;
    note >> theirs >> address >> transport;
    if (theirs != plan_.size)
      return "was started as one of " + std::to_string(plan_.size) + " ranks, but rank " + std::to_string(r) +
             " as one of " + std::to_string(theirs);
    if (transport != name_of(plan_.transport))
      return "was started with --backend " + std::string(name_of(plan_.transport)) + ", but rank " +
             std::to_string(r) + " with " + transport;
    if (plan_.interface.empty() && is_loopback(address) != is_loopback(local_address_))
      return "would listen on " + local_address_ + " and rank " + std::to_string(r) + " on " + address +
             ", which cannot reach each other; name the network with --interface";
  }
  return {};
}

void Meeting::compare_notes(c10d::Store& store) const {
  const std::string reason = disagreement(store);
  auto read_by = store.add("read", 1);
  if (reason.empty()) return;
  // The store goes with its host: not before the others have seen for themselves. Who waits for more ranks never does.
  const Deadline patience = std::min(deadline_, Clock::now() + std::chrono::seconds(1));
  for (; hosts() && read_by < plan_.size && Clock::now() < patience; read_by = store.add("read", 0))
    std::this_thread::sleep_for(milliseconds(10));
  fail(reason);
}

std::string Meeting::address() const {
  try {
    return plan_.interface.empty() ? local_address_ : address_of(plan_.interface);
  } catch (const Error& error) {
    fail(error.what());
  }
}

// Rank 0 may serve the others from its store as long as they live.
struct Member {
  Member(StorePtr store, c10::intrusive_ptr<c10d::ProcessGroup> connections)
      : store(std::move(store)), communicator(std::move(connections)) {}
  StorePtr store;
  C10dCommunicator communicator;
};

std::shared_ptr<Communicator> over_gloo(const StoreMeeting& met, const StorePtr& own,
                                        const std::string& address) {
  auto options = c10d::ProcessGroupGloo::Options::create(met.timeout);
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
  options->threads = 1;  // Of no use to messages between two ranks.
  auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(own, met.rank, met.size, options);
  const auto both = std::make_shared<Member>(met.store, compat::wrap(own, met.rank, met.size, gloo));
  return {both, &both->communicator};
}

std::shared_ptr<Communicator> over_tcp(const StoreMeeting& met, const StorePtr& own,
                                       const std::string& address) {
  const Noticeboard board = {.write =
                                 [&](const std::string& key, const std::string& text) {
                                   own->set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
                                 },
                             .find =
                                 [&](const std::string& key, Deadline deadline) {
                                   // The store's own wait is as long as whoever made the store said.
                                   while (!own->check({key})) {
                                     if (Clock::now() >= deadline) throw Error("it has not come");
                                     std::this_thread::sleep_for(milliseconds(10));
                                   }
                                   const std::vector<std::uint8_t> bytes = own->get(key);
                                   return std::string(bytes.begin(), bytes.end());
                                 }};
  return std::make_shared<TcpCommunicator>(
      met.rank, connect_ranks(met.rank, met.size, address, board, Clock::now() + met.timeout), met.timeout);
}

// Connections between ranks that have met.
std::shared_ptr<Communicator> connected(const StoreMeeting& met, const std::string& address,
                                        const std::string& name) {
  ignore_broken_pipes();
  try {
    const StorePtr own = c10::make_intrusive<c10d::PrefixStore>(name, met.store);
    return met.transport == Transport::kTcp ? over_tcp(met, own, address) : over_gloo(met, own, address);
  } catch (const Error&) {
    throw;  // It says who could not be connected with whom.
  } catch (...) {
    throw Error("rank " + std::to_string(met.rank) + ": connecting to " + std::to_string(met.size - 1) +
                " other ranks for " + name + ": " + reason_of_current_exception());
  }
}

}  // namespace

Group c10d_group(const Rendezvous& plan) {
  Meeting meeting(plan);
  const StorePtr store = meeting.enter();
  meeting.await_everyone(*store);
  const std::string address = meeting.address();
  const StoreMeeting met{.store = store,
                         .rank = plan.rank,
                         .size = plan.size,
                         .timeout = plan.timeout,
                         .transport = plan.transport};
  auto gradients = connected(met, address, "gradients");
  auto control = connected(met, address, "control");
  meeting.leave_store(*control);
  return {std::move(gradients), std::move(control)};
}

Group gloo_group(const Rendezvous& plan) {
  Rendezvous meeting = plan;
  meeting.transport = Transport::kGloo;
  return c10d_group(meeting);
}

Group c10d_group(const StoreMeeting& meeting) {
  StoreMeeting met = meeting;
  met.store = c10::make_intrusive<c10d::PrefixStore>(meeting.prefix, meeting.store);
  const std::string address = address_of(meeting.interface);
  auto gradients = connected(met, address, "gradients");
  return {std::move(gradients), connected(met, address, "control")};
}

}  // namespace accordion
