// Runs a test once for each instruction set that this machine has.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string>

namespace accordion::kernels {

class EachTarget : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

inline std::string target_name(const ::testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

// For a fixture derived from EachTarget.
#define ACCORDION_ON_EACH_TARGET(Fixture)                                                              \
  INSTANTIATE_TEST_SUITE_P(Targets, Fixture, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), \
                           target_name)

}  // namespace accordion::kernels
