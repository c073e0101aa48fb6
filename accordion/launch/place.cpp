#include "accordion/launch/place.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "accordion/base/error.h"

namespace accordion {
namespace {

constexpr int kMostRanks = 1'000'000;  // Each takes some memory of every other.
constexpr int kDefaultPort = 29500;    // PyTorch's.

class Variables {
 public:
  explicit Variables(const GetVariable& get) : get_(get) {}

  // Empty counts as unset: `RANK= program` is how a shell takes a variable away.
  std::optional<std::string> text(const char* name) const {
    const char* value = get_(name);
    return value && *value ? std::optional<std::string>(value) : std::nullopt;
  }

  std::optional<int> number(const char* name, int low, int high, const std::string& reason = "") const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    int result = 0;
    const char* last = value->data() + value->size();
    const auto [end, error] = std::from_chars(value->data(), last, result);
    if (error != std::errc() || end != last || result < low || result > high)
      throw UsageError(std::string(name) + "=" + *value + ", expected a whole number from " +
                       std::to_string(low) + " to " + std::to_string(high) + reason);
    return result;
  }

 private:
  const GetVariable& get_;
};

struct Names {
  const char *source, *rank, *world, *local_rank, *local_world;
};
constexpr Names kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kPmi = {"MPI (PMI)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Names kSlurm = {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"};

std::string because(const char* name, int value) {
  return " (" + std::string(name) + "=" + std::to_string(value) + ")";
}

Place rank_and_world(const Variables& variables, const Names& names) {
  Place place;
  place.source = names.source;
  const std::optional<int> world = variables.number(names.world, 1, kMostRanks);
  if (!world)
    throw UsageError(std::string(names.rank) + "=" + *variables.text(names.rank) + " is set but " +
                     names.world + " is not; expected both or neither");
  place.world = *world;
  place.rank = *variables.number(names.rank, 0, place.world - 1, because(names.world, place.world));
  return place;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

// Takes MASTER_ADDR and MASTER_PORT, which win over everything, or finds a default that cannot be wrong.
void meet(Place& place, const Variables& variables, bool all_local, const std::string& fallback_address) {
  place.port = variables.number("MASTER_PORT", 1, 65535).value_or(kDefaultPort);
  if (const std::optional<std::string> given = variables.text("MASTER_ADDR"))
    place.address = *given;
  else if (!all_local && !fallback_address.empty())
    place.address = fallback_address;
  else if (!all_local)
    throw UsageError(
        "MASTER_ADDR is not set, and " + place.source + " does not say that all " +
        std::to_string(place.world) +
        " ranks are on this machine; expected the address of rank 0's machine, 127.0.0.1 if all are here");
}

Place place_of(const Variables& variables, const Names& names) {
  Place place = rank_and_world(variables, names);
  const std::optional<int> local_world =
      variables.number(names.local_world, 1, place.world, because(names.world, place.world));
  const std::optional<int> local_rank =
      local_world
          ? variables.number(names.local_rank, 0, *local_world - 1, because(names.local_world, *local_world))
          : variables.number(names.local_rank, 0, place.world - 1, because(names.world, place.world));
  meet(place, variables, place.world == 1 || local_world == place.world, "");
  if (local_rank || local_world) {
    place.local_rank = local_rank.value_or(0);
    place.local_world = local_world.value_or(place.local_rank + 1);
  } else if (is_loopback(place.address)) {
    place.local_rank = place.rank;
    place.local_world = place.world;
  }
  return place;
}

Place torchrun_place(const Variables& variables) {
  Place place = place_of(variables, kTorchrun);
  place.store_elsewhere = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place.restart = variables.number("TORCHELASTIC_RESTART_COUNT", 0, kMostRanks).value_or(0);
  if (!place.store_elsewhere) return place;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"})
    if (!variables.text(name))
      throw UsageError("TORCHELASTIC_USE_AGENT_STORE=True but " + std::string(name) +
                       " is not set; expected where the agent's store listens");
  return place;
}

// A shell under sbatch or salloc has SLURM_NTASKS and even SLURM_PROCID, but is no rank. Only srun gives its
// tasks a numbered step; the batch script's and the interactive shell's own step ids are the last few 32-bit
// numbers.
bool started_by_srun(const Variables& variables) {
  const std::optional<std::string> step = variables.text("SLURM_STEP_ID");
  if (!step || !variables.text("SLURM_PROCID")) return false;
  std::uint32_t id = 0;
  const char* last = step->data() + step->size();
  const auto [end, error] = std::from_chars(step->data(), last, id);
  return error == std::errc() && end == last && id < 0xfffffff0U;
}

Place slurm_place(const Variables& variables) {
  // The step may be smaller than the job, whose count SLURM_NTASKS can be.
  Names names = kSlurm;
  if (variables.text("SLURM_STEP_NUM_TASKS")) names.world = "SLURM_STEP_NUM_TASKS";
  Place place = rank_and_world(variables, names);
  place.local_rank = variables.number(names.local_rank, 0, place.world - 1).value_or(0);

  const char* nodes_name = variables.text("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
  const std::optional<int> nodes = variables.number(nodes_name, 1, kMostRanks);
  const std::optional<int> per_node = variables.number(names.local_world, 1, kMostRanks);
  const bool all_local = place.world == 1 || (nodes ? *nodes == 1 : per_node && *per_node >= place.world);
  if (all_local)
    place.local_world = place.world;
  else
    // Tasks per node is the job's wish, not this step's fact: never fewer than the tasks that we know of.
    place.local_world = std::clamp(per_node ? *per_node
                                   : nodes  ? (place.world + *nodes - 1) / *nodes
                                            : 1,
                                   place.local_rank + 1, place.world);

  // Rank 0 is on the step's first node. The launch node comes last: srun may have been called on a login
  // node.
  std::string address;
  for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
    if (address.empty()) address = first_host(variables.text(list).value_or(""));
  if (address.empty()) address = variables.text("SLURM_LAUNCH_NODE_IPADDR").value_or("");
  meet(place, variables, all_local, address);
  return place;
}

}  // namespace

std::optional<Place> place_from_environment(const GetVariable& get) {
  const Variables variables(get);
  if (variables.text(kTorchrun.rank)) return torchrun_place(variables);
  if (variables.text(kOpenMpi.rank)) return place_of(variables, kOpenMpi);
  // mpirun inside Slurm starts its proxies with srun, so PMI is the nearer one; but srun speaks PMI as well,
  // then without saying which ranks are local.
  const bool srun = started_by_srun(variables);
  if (variables.text(kPmi.rank) && (variables.text(kPmi.local_rank) || !srun))
    return place_of(variables, kPmi);
  if (srun) return slurm_place(variables);
  if (const std::optional<std::string> world = variables.text(kTorchrun.world))
    throw UsageError("WORLD_SIZE=" + *world + " is set but RANK is not; expected both or neither");
  return std::nullopt;
}

std::map<std::string, std::string> place_environment(const Place& place) {
  return {{"RANK", std::to_string(place.rank)},
          {"WORLD_SIZE", std::to_string(place.world)},
          {"LOCAL_RANK", std::to_string(place.local_rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(place.local_world)},
          {"MASTER_ADDR", place.address},
          {"MASTER_PORT", std::to_string(place.port)},
          {"TORCHELASTIC_USE_AGENT_STORE", place.store_elsewhere ? "True" : "False"},
          {"TORCHELASTIC_RESTART_COUNT", std::to_string(place.restart)}};
}

std::string first_host(std::string_view node_list) {
  std::string host;
  bool in_brackets = false, taken = false;
  for (const char c : node_list) {
    if (c == '[') {
      in_brackets = true;
      taken = false;
    } else if (c == ']') {
      in_brackets = false;
    } else if (in_brackets) {
      taken = taken || c == '-' || c == ',';
      if (!taken) host += c;
    } else if (c == ',') {
      break;
    } else {
      host += c;
    }
  }
  return host;
}

}  // namespace accordion
