#include "accordion/comm/c10d_store.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using std::chrono::milliseconds;

class C10dStore final : public c10d::Store {
 public:
  C10dStore(std::unique_ptr<MeetingStoreClient> client, milliseconds timeout)
      : c10d::Store(timeout), client_(std::move(client)) {}

  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    ask([&] { client_->set(key, {reinterpret_cast<const char*>(value.data()), value.size()}); });
  }

  // Waits for the key, as all of torch's stores do.
  std::vector<std::uint8_t> get(const std::string& key) override {
    wait({key}, timeout_);
    const std::string value = find(key).value_or("");
    return {value.begin(), value.end()};
  }

  std::int64_t add(const std::string& key, std::int64_t value) override {
    return ask([&] { return client_->add(key, value); });
  }

  bool deleteKey(const std::string& key) override {
    return ask([&] { return client_->erase(key); });
  }

  bool check(const std::vector<std::string>& keys) override {
    return std::all_of(keys.begin(), keys.end(),
                       [&](const std::string& key) { return find(key).has_value(); });
  }

  std::int64_t getNumKeys() override { throw std::runtime_error("the ranks' store does not count its keys"); }

  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }

  void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (const std::string& key : keys)
      while (!find(key)) {
        if (std::chrono::steady_clock::now() > deadline)
          throw std::runtime_error("the ranks' store still lacks " + key);
        std::this_thread::sleep_for(milliseconds(5));
      }
  }

 private:
  // As torch's stores fail: whoever asked says which rank it was, and what for.
  template <class Call>
  std::invoke_result_t<Call> ask(const Call& call) {
    const std::lock_guard lock(mutex_);
    try {
      return call();
    } catch (const Error& error) {
      throw std::runtime_error(error.what());
    }
  }

  std::optional<std::string> find(const std::string& key) {
    return ask([&] { return client_->get(key); });
  }

  std::mutex mutex_;
  const std::unique_ptr<MeetingStoreClient> client_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> c10d_store(std::unique_ptr<MeetingStoreClient> client, milliseconds timeout) {
  return c10::make_intrusive<C10dStore>(std::move(client), timeout);
}

}  // namespace accordion
