#include "accordion/engine/redistribute.h"

#include <algorithm>
#include <string>

#include "accordion/base/error.h"
#include "accordion/compress/chunked.h"

namespace accordion {
namespace {

using Floats = std::vector<float>;

// What each rank keeps of a tensor for itself, by the last part of its name: the residual, what a codec accumulates before it
// sends (DGC's momentum), and what the owner of a chunk owes. Everything else is the same on all ranks, or rank 0's alone.
bool ends_with(std::string_view name, std::string_view piece) {
  return name.ends_with(piece) && name.size() > piece.size() && name[name.size() - piece.size() - 1] == '/';
}
bool is_own(std::string_view name) {
  return ends_with(name, "residual") || ends_with(name, "momentum") || ends_with(name, "owed");
}
// A share of the samples is one rank's of a group of this size; whoever has uneven batches says it anew.
bool is_share(std::string_view name) {
  return name == "exchange/weight";
}
// Rank 0 alone watches.
bool is_watched(std::string_view name) {
  return name.starts_with("exchange/window/");
}

// The residual beside which a piece lies: of "fc.weight/waiting/owed", "fc.weight/residual".
std::string residual_beside(std::string_view name) {
  std::string tensor(name.substr(0, name.rfind('/')));
  if (tensor.ends_with("/waiting")) tensor.resize(tensor.size() - std::string_view("/waiting").size());
  return tensor + "/residual";
}

const Floats& floats_of(const StateValue& value, const std::string& name) {
  if (const auto* floats = std::get_if<Floats>(&value)) return *floats;
  throw Error(name + ": expected a list of single-precision numbers");
}

void add_scaled(const Floats& values, float scale, StateValue& sum, const std::string& name) {
  if (values.empty()) return;
  if (!std::holds_alternative<Floats>(sum)) sum = Floats();
  Floats& into = std::get<Floats>(sum);
  if (into.empty()) into.resize(values.size());
  if (into.size() != values.size())
    throw Error(name + ": " + std::to_string(values.size()) + " values on one rank and " +
                std::to_string(into.size()) + " on another");
  for (std::size_t i = 0; i < values.size(); ++i) into[i] += scale * values[i];
}

int number_of(const State& state, std::string_view name) {
  int number = 0;
  StateReader(state).get(name, number);
  return number;
}

// What the owner of a chunk owes is a mean; as part of a residual it counts once for each rank there was.
void add_owed(const State& state, const std::string& name, const Floats& owed, float scale, State& sum) {
  if (owed.empty()) return;
  const std::string residual = residual_beside(name);
  const auto found = state.find(residual);
  if (found == state.end()) throw Error(name + ": without a residual");
  Floats spread(floats_of(found->second, residual).size());
  const int ranks = number_of(state, "ranks");
  const Chunk chunk = chunk_of(spread.size(), ranks, number_of(state, "rank"));
  if (owed.size() != chunk.count)
    throw Error(name + ": " + std::to_string(owed.size()) + " values, expected " +
                std::to_string(chunk.count));
  std::copy(owed.begin(), owed.end(), spread.begin() + static_cast<std::ptrdiff_t>(chunk.offset));
  add_scaled(spread, scale * static_cast<float>(ranks), sum[residual], residual);
}

}  // namespace

State redistributed(const State& first, std::span<const State> taken_over, int rank, int ranks) {
  State sum;
  for (const auto& [name, value] : first) {
    // A rank that takes over from nobody starts with nothing owed.
    if (is_own(name))
      sum[name] = Floats(ends_with(name, "owed") ? 0 : floats_of(value, name).size());
    else if (!is_share(name) && (rank == 0 || !is_watched(name)))
      sum[name] = value;
  }
  const float scale = static_cast<float>(ranks) / static_cast<float>(number_of(first, "ranks"));
  for (const State& state : taken_over)
    for (const auto& [name, value] : state) {
      if (!is_own(name)) continue;
      const Floats& values = floats_of(value, name);
      if (ends_with(name, "owed"))
        add_owed(state, name, values, scale, sum);
      else
        add_scaled(values, scale, sum[name], name);
    }
  sum["rank"] = std::vector<std::int64_t>{rank};
  sum["ranks"] = std::vector<std::int64_t>{ranks};
  return sum;
}

}  // namespace accordion
