// What outlives a step, each piece by its name and in its own type, so that it can be saved, loaded, and handed
// from one object to the next. An object that has such state says it twice, once for each direction:
//
//   void save_state(const StateWriter& state) const { state.put("steps", steps_); }
//   void load_state(const StateReader& state) { state.get("steps", steps_); }
//
// Parts of a whole are named after it: "conv1.weight/residual".
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace accordion {

// A single number is a list of one.
using StateValue =
    std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>, std::string>;
using State = std::map<std::string, StateValue, std::less<>>;

class StateWriter {
 public:
  explicit StateWriter(State& state) : state_(state) {}

  // The writer of a part, whose names start with "part/".
  StateWriter within(std::string_view part) const {
    return StateWriter(state_, prefix_ + std::string(part) + "/");
  }

  // Throws Error for a name that is there already: two parts have the same name.
  void put(std::string_view name, StateValue value) const;
  void put(std::string_view name, std::integral auto value) const {
    put(name, std::vector{static_cast<std::int64_t>(value)});
  }
  void put(std::string_view name, double value) const { put(name, std::vector{value}); }

 private:
  StateWriter(State& state, std::string prefix) : state_(state), prefix_(std::move(prefix)) {}

  State& state_;
  std::string prefix_;
};

class StateReader {
 public:
  // What becomes of a value whose name is not there: an Error, or it stays as it is.
  enum class Missing { kRefuse, kKeep };

  explicit StateReader(const State& state, Missing missing = Missing::kRefuse)
      : StateReader(state, missing, "", std::make_shared<Names>()) {}

  StateReader within(std::string_view part) const {
    return StateReader(state_, missing_, prefix_ + std::string(part) + "/", read_);
  }

  // Throw Error for a name that is missing or has a value of another type or length.
  void get(std::string_view name, std::vector<float>& values) const { read(name, values); }
  void get(std::string_view name, std::vector<double>& values) const { read(name, values); }
  void get(std::string_view name, std::vector<std::int64_t>& values) const { read(name, values); }
  void get(std::string_view name, std::string& text) const { read(name, text); }
  void get(std::string_view name, double& value) const { read_one(name, value); }
  void get(std::string_view name, std::integral auto& value) const {
    auto number = static_cast<std::int64_t>(value);
    read_one(name, number);
    using Value = std::decay_t<decltype(value)>;
    // Those of 64 bits come back as they went, whatever their sign.
    if constexpr (!std::is_same_v<Value, bool> && sizeof(Value) < sizeof number)
      if (!std::in_range<Value>(number)) refuse_range(name, number);
    value = static_cast<Value>(number);
  }
  template <class Number>
  void get(std::string_view name, std::vector<Number>& values, std::size_t count) const {
    std::vector<Number> found = values;
    get(name, found);
    if (found.size() != count) refuse_length(name, found.size(), count);
    values = std::move(found);
  }

  // For what older states do not have.
  bool has(std::string_view name) const { return state_.contains(prefix_ + std::string(name)); }

  // Everything of this part, by its name in it; counts as read.
  State all() const;

  // Throws Error for a name of this part that nobody asked for: the state of something else.
  void require_all_read() const;

 private:
  using Names = std::set<std::string, std::less<>>;

  StateReader(const State& state, Missing missing, std::string prefix, std::shared_ptr<Names> read)
      : state_(state), missing_(missing), prefix_(std::move(prefix)), read_(std::move(read)) {}

  template <class Value>
  bool read(std::string_view name, Value& value) const {
    const StateValue* found = find(name);
    if (!found) return false;
    if (!std::holds_alternative<Value>(*found)) refuse_type(name, *found, StateValue(Value{}));
    value = std::get<Value>(*found);
    return true;
  }
  template <class Number>
  void read_one(std::string_view name, Number& value) const {
    std::vector<Number> values;
    if (!read(name, values)) return;
    if (values.size() != 1) refuse_length(name, values.size(), 1);
    value = values[0];
  }

  const StateValue* find(std::string_view name) const;
  [[noreturn]] void refuse_type(std::string_view name, const StateValue& found,
                                const StateValue& expected) const;
  [[noreturn]] void refuse_length(std::string_view name, std::size_t found, std::size_t expected) const;
  [[noreturn]] void refuse_range(std::string_view name, std::int64_t found) const;

  const State& state_;
  Missing missing_;
  std::string prefix_;
  std::shared_ptr<Names> read_;  // Shared with all parts.
};

}  // namespace accordion
