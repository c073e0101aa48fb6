// Started by mpirun with 1 to 5 ranks; every rank runs every test.
#include "accordion/comm/mpi.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "accordion/base/error.h"
#include "accordion/comm/communicator_contract.h"
#include "accordion/comm/mpi_group.h"

namespace accordion {
namespace {

MpiSession* session = nullptr;

class MpiContract : public testing::TestWithParam<ContractCase> {};

TEST_P(MpiContract, Holds) {
  GetParam().run(*session->communicator());
}

INSTANTIATE_TEST_SUITE_P(All, MpiContract, testing::ValuesIn(kContract),
                         [](const testing::TestParamInfo<ContractCase>& info) { return info.param.name; });

TEST(Mpi, GradientsAndControlWorkAtTheSameTime) {
  Group group = mpi_group();
  std::thread thread([&] { contract::calls_keep_their_order(group.gradients()); });
  contract::calls_keep_their_order(group.control());
  thread.join();
}

TEST(Mpi, NamesTheRankWhoseMessageIsTooLong) {
  const auto group = session->communicator();
  if (group->size() != 2) GTEST_SKIP() << "needs two ranks";
  std::byte sent[8] = {}, received[8];
  const bool wrong = group->rank() == 1;
  const std::span<const std::byte> send[] = {wrong ? std::span<std::byte>() : sent,
                                             wrong ? std::span<std::byte>() : sent};
  const std::span<std::byte> rank0[] = {received, {}}, rank1[] = {std::span(received).first(4), {}};
  if (!wrong) return group->all_to_all(send, rank0);
  try {
    group->all_to_all(send, rank1);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("rank 1: receiving 4 bytes from rank 0: "))
        << error.what();
  }
}

}  // namespace
}  // namespace accordion

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  accordion::MpiSession session;
  accordion::session = &session;
  return RUN_ALL_TESTS();
}
