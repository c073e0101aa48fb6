#include "accordion/launch/place.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "accordion/base/error.h"

namespace accordion {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Place> place(const Variables& variables) {
  return place_from_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string complaint(const Variables& variables) {
  try {
    place(variables);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(Place, NoLauncherNoPlace) {
  EXPECT_FALSE(place({}));
  EXPECT_FALSE(place({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}, {"LOCAL_RANK", "3"}}));
}

TEST(Place, Torchrun) {
  const Variables variables = {{"RANK", "5"},         {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},   {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "1234"}};
  const Place found = *place(variables);
  EXPECT_EQ(found.rank, 5);
  EXPECT_EQ(found.world, 8);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.local_world, 4);
  EXPECT_EQ(found.address, "n0");
  EXPECT_EQ(found.port, 1234);
  EXPECT_FALSE(found.store_elsewhere);
  EXPECT_EQ(found.source, "torchrun");
}

TEST(Place, AgentStoreMakesEveryRankAClient) {
  Variables variables = {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  EXPECT_NE(complaint(variables).find("MASTER_ADDR is not set"), std::string::npos);
  variables.merge(Variables{{"MASTER_ADDR", "n0"}, {"MASTER_PORT", "1234"}});
  EXPECT_TRUE(place(variables)->store_elsewhere);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_FALSE(place(variables)->store_elsewhere);
}

TEST(Place, SetByHandOnThisMachine) {
  const Place found = *place({{"RANK", "2"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "localhost"}});
  EXPECT_EQ(found.local_rank, 2);
  EXPECT_EQ(found.local_world, 3);
  EXPECT_EQ(found.port, 29500);
}

TEST(Place, SetByHandOneRankAMachine) {
  const Place found = *place({{"RANK", "2"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "10.0.0.1"}});
  EXPECT_EQ(found.local_rank, 0);
  EXPECT_EQ(found.local_world, 1);
}

TEST(Place, OpenMpiOnOneMachineMeetsOnLoopback) {
  const Variables variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                               {"OMPI_COMM_WORLD_SIZE", "2"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                               {"SLURM_PROCID", "0"},
                               {"SLURM_STEP_ID", "0"},
                               {"SLURM_NTASKS", "1"}};
  const Place found = *place(variables);
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.world, 2);
  EXPECT_EQ(found.address, "127.0.0.1");
  EXPECT_EQ(found.port, 29500);
  EXPECT_EQ(found.source, "Open MPI");
}

TEST(Place, OpenMpiOnSeveralMachinesNeedsAnAddress) {
  Variables variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_NE(complaint(variables).find("MASTER_ADDR is not set"), std::string::npos);
  variables["MASTER_ADDR"] = "n7";
  EXPECT_EQ(place(variables)->address, "n7");
}

TEST(Place, Pmi) {
  const Place found =
      *place({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "3"}, {"MPI_LOCALNRANKS", "4"}});
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.local_rank, 3);
  EXPECT_EQ(found.local_world, 4);
  EXPECT_EQ(found.address, "127.0.0.1");
}

const Variables kSrun = {{"SLURM_PROCID", "3"},  {"SLURM_STEP_ID", "0"},
                         {"SLURM_NTASKS", "6"},  {"SLURM_LOCALID", "1"},
                         {"SLURM_NNODES", "3"},  {"SLURM_JOB_NODELIST", "node[03-05,9]"},
                         {"SLURM_JOB_ID", "77"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.1.1.1"}};

TEST(Place, Slurm) {
  const Place found = *place(kSrun);
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.world, 6);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.local_world, 2);
  EXPECT_EQ(found.address, "node03");
  EXPECT_EQ(found.port, 29500);
  EXPECT_EQ(found.source, "Slurm");
}

TEST(Place, SlurmSpeakingPmiIsStillSlurm) {
  Variables variables = kSrun;
  variables.merge(Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "6"}});
  EXPECT_EQ(place(variables)->source, "Slurm");
  variables["MPI_LOCALRANKID"] = "1";
  variables["MASTER_ADDR"] = "n1";
  EXPECT_EQ(place(variables)->source, "MPI (PMI)");
}

TEST(Place, SlurmDetails) {
  Variables variables = kSrun;
  variables["SLURM_NTASKS_PER_NODE"] = "4";
  EXPECT_EQ(place(variables)->local_world, 4);
  variables["SLURM_NTASKS_PER_NODE"] = "1";  // The job's, while this step put two here.
  EXPECT_EQ(place(variables)->local_world, 2);
  variables["SLURM_NTASKS"] = "12";
  variables["SLURM_STEP_NUM_TASKS"] = "5";
  EXPECT_EQ(place(variables)->world, 5);
  variables.erase("SLURM_JOB_NODELIST");
  EXPECT_EQ(place(variables)->address, "10.1.1.1");
  variables["SLURM_NNODES"] = "1";
  EXPECT_EQ(place(variables)->address, "127.0.0.1");
  EXPECT_EQ(place(variables)->local_world, 5);
  variables["MASTER_ADDR"] = "n1";
  EXPECT_EQ(place(variables)->address, "n1");
}

TEST(Place, AShellUnderSlurmIsNoRank) {
  EXPECT_FALSE(place({{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "77"}}));
  Variables variables = kSrun;
  variables["SLURM_STEP_ID"] = "4294967290";
  EXPECT_FALSE(place(variables));
  variables.erase("SLURM_STEP_ID");
  EXPECT_FALSE(place(variables));
}

TEST(Place, ComplaintsNameVariableValueAndRange) {
  EXPECT_EQ(complaint({{"RANK", "abc"}, {"WORLD_SIZE", "4"}}),
            "RANK=abc, expected a whole number from 0 to 3 (WORLD_SIZE=4)");
  EXPECT_EQ(complaint({{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
            "RANK=4, expected a whole number from 0 to 3 (WORLD_SIZE=4)");
  EXPECT_EQ(complaint({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
            "WORLD_SIZE=0, expected a whole number from 1 to 1000000");
  EXPECT_EQ(complaint({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "99999"}}),
            "MASTER_PORT=99999, expected a whole number from 1 to 65535");
  EXPECT_EQ(complaint({{"RANK", "0"}}), "RANK=0 is set but WORLD_SIZE is not; expected both or neither");
  EXPECT_EQ(complaint({{"WORLD_SIZE", "2"}}),
            "WORLD_SIZE=2 is set but RANK is not; expected both or neither");
  EXPECT_EQ(complaint({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "1"}}),
            "LOCAL_RANK=1, expected a whole number from 0 to 0 (LOCAL_WORLD_SIZE=1)");
  EXPECT_EQ(complaint({{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}),
            "WORLD_SIZE=99999999999, expected a whole number from 1 to 1000000");
  for (const char* garbage : {"-1", "1x", " 1", "+1", "1.0", "99999999999999999999"})
    EXPECT_NE(complaint({{"RANK", garbage}, {"WORLD_SIZE", "4"}}), "none") << garbage;
}

TEST(Place, FirstHost) {
  EXPECT_EQ(first_host("node[03-05,9]"), "node03");
  EXPECT_EQ(first_host("node[12,14-15]-ib,other"), "node12-ib");
  EXPECT_EQ(first_host("r[1-2]n[7-9]"), "r1n7");
  EXPECT_EQ(first_host("gpu-a,gpu-b"), "gpu-a");
  EXPECT_EQ(first_host("one"), "one");
  EXPECT_EQ(first_host(""), "");
}

RC_GTEST_PROP(Place, GoesThroughAnEnvironment, ()) {
  Place before;
  before.world = *rc::gen::inRange(1, 1000);
  before.rank = *rc::gen::inRange(0, before.world);
  before.local_world = *rc::gen::inRange(1, before.world + 1);
  before.local_rank = *rc::gen::inRange(0, before.local_world);
  before.address = *rc::gen::element<std::string>("127.0.0.1", "node7", "::1");
  before.port = *rc::gen::inRange(1, 65536);
  before.store_elsewhere = *rc::gen::arbitrary<bool>();
  before.restart = *rc::gen::inRange(0, 5);
  const std::optional<Place> after = place(place_environment(before));
  RC_ASSERT(after.has_value());
  RC_ASSERT(after->rank == before.rank && after->world == before.world);
  RC_ASSERT(after->local_rank == before.local_rank && after->local_world == before.local_world);
  RC_ASSERT(after->address == before.address && after->port == before.port);
  RC_ASSERT(after->store_elsewhere == before.store_elsewhere && after->restart == before.restart);
}

}  // namespace
}  // namespace accordion
