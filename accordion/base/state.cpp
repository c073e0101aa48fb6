#include "accordion/base/state.h"

#include "accordion/base/error.h"

namespace accordion {
namespace {

constexpr const char* kTypes[] = {"floats", "doubles", "integers", "text"};
static_assert(std::size(kTypes) == std::variant_size_v<StateValue>);

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw Error("state: " + name + " " + what);
}

}  // namespace

void StateWriter::put(std::string_view name, StateValue value) const {
  const auto [place, added] = state_.emplace(prefix_ + std::string(name), std::move(value));
  if (!added) refuse(place->first, "is there already, expected each name once");
}

const StateValue* StateReader::find(std::string_view name) const {
  const std::string whole = prefix_ + std::string(name);
  const auto found = state_.find(whole);
  if (found == state_.end()) {
    if (missing_ == Missing::kRefuse) refuse(whole, "is missing");
    return nullptr;
  }
  read_->insert(whole);
  return &found->second;
}

void StateReader::refuse_type(std::string_view name, const StateValue& found,
                              const StateValue& expected) const {
  refuse(prefix_ + std::string(name),
         std::string("has ") + kTypes[found.index()] + ", expected " + kTypes[expected.index()]);
}

void StateReader::refuse_length(std::string_view name, std::size_t found, std::size_t expected) const {
  refuse(prefix_ + std::string(name),
         "has " + std::to_string(found) + " values, expected " + std::to_string(expected));
}

void StateReader::refuse_range(std::string_view name, std::int64_t found) const {
  refuse(prefix_ + std::string(name), "is " + std::to_string(found) + ", which its type cannot hold");
}

State StateReader::all() const {
  State part;
  for (auto piece = state_.lower_bound(prefix_); piece != state_.end() && piece->first.starts_with(prefix_);
       ++piece) {
    read_->insert(piece->first);
    part.emplace(piece->first.substr(prefix_.size()), piece->second);
  }
  return part;
}

void StateReader::require_all_read() const {
  for (auto piece = state_.lower_bound(prefix_); piece != state_.end() && piece->first.starts_with(prefix_);
       ++piece)
    if (!read_->contains(piece->first)) refuse(piece->first, "belongs to nothing here");
}

}  // namespace accordion
