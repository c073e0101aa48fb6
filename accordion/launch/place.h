// Where this process stands in its group, as the program that started it says in environment variables:
// torchrun, Open MPI's mpirun, an MPICH-style mpirun (PMI), Slurm's srun, or ourselves.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace accordion {

// std::getenv, or a test's stand-in for it.
using GetVariable = std::function<const char*(const char*)>;

struct Place {
  int rank = 0, world = 1, local_rank = 0, local_world = 1;
  std::string address = "127.0.0.1";  // Of the store at which the ranks meet.
  int port = 0;
  bool store_elsewhere = false;  // The launcher hosts the store: rank 0 is a client too.
  int restart = 0;               // How often the launcher has started the group again, on the same store.
  std::string source = {};       // Who said so, for messages.
};

// Nothing when no launcher is seen. Values that cannot be right are UsageErrors.
std::optional<Place> place_from_environment(const GetVariable& get);

// The variables from which place_from_environment takes this very place: for starting ranks ourselves.
std::map<std::string, std::string> place_environment(const Place& place);

// First host of Slurm's notation: "node03" of "node[03-05,9],login1".
std::string first_host(std::string_view node_list);

}  // namespace accordion
