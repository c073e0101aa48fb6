// What every communicator promises, as a list of cases. Each is run by all ranks of a group at once; a test
// of an implementation only has to make the group:
//
//   for (const ContractCase& test : kContract) run_ranks(ranks, test.run);
#pragma once

#include <ostream>

#include "accordion/comm/communicator.h"

namespace accordion::contract {

void knows_its_place(Communicator& group);
void all_to_all_moves_every_pair(Communicator& group);
void own_message_arrives(Communicator& group);
void gather_takes_unequal_lengths(Communicator& group);
void gather_of_equal_lengths_is_contiguous(Communicator& group);
void broadcast_comes_from_every_root(Communicator& group);
void sum_adds_in_rank_order(Communicator& group);
void max_takes_the_largest(Communicator& group);
void sum_does_not_depend_on_the_place(Communicator& group);
void sum_and_max_follow_ieee(Communicator& group);
void calls_keep_their_order(Communicator& group);

}  // namespace accordion::contract

namespace accordion {

struct ContractCase {
  const char* name;
  void (*run)(Communicator&);
};

inline void PrintTo(const ContractCase& test, std::ostream* out) {
  *out << test.name;
}

inline constexpr ContractCase kContract[] = {
    {"KnowsItsPlace", contract::knows_its_place},
    {"AllToAllMovesEveryPair", contract::all_to_all_moves_every_pair},
    {"OwnMessageArrives", contract::own_message_arrives},
    {"GatherTakesUnequalLengths", contract::gather_takes_unequal_lengths},
    {"GatherOfEqualLengthsIsContiguous", contract::gather_of_equal_lengths_is_contiguous},
    {"BroadcastComesFromEveryRoot", contract::broadcast_comes_from_every_root},
    {"SumAddsInRankOrder", contract::sum_adds_in_rank_order},
    {"MaxTakesTheLargest", contract::max_takes_the_largest},
    {"SumDoesNotDependOnThePlace", contract::sum_does_not_depend_on_the_place},
    {"SumAndMaxFollowIeee", contract::sum_and_max_follow_ieee},
    {"CallsKeepTheirOrder", contract::calls_keep_their_order},
};

}  // namespace accordion
