// What calibrate learns of a device, of the one that is late on purpose.
#include "bench/calibrate_device.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>

#include "accordion/base/error.h"
#include "accordion/comm/loopback.h"
#include "accordion/ddp/late_device_testing.h"

namespace accordion::bench {
namespace {

// A copy there takes what it is late by, whatever its size, so twice the bytes are twice the rate.
TEST(CalibrateDevice, CopiesTakeWhatTheyTake) {
  run_loopback(2, [](Communicator& control) {
    const c10::Device device = late_device(control.rank());
    const std::vector<perf::BucketProfile> one = {{1, 50000}}, larger = {{1, 100000}},
                                           two = {{1, 50000}, {2, 50000}};
    const perf::DeviceProfile base = measure_copies(control, device, one, 0.1);
    const double least_seconds = std::chrono::duration<double>(kLate).count();
    for (const double gbps : {base.to_host_gbps, base.to_device_gbps}) {
      EXPECT_GT(gbps, 0);
      EXPECT_LE(gbps, 8e-9 * 200000 / least_seconds) << "it was not waited for";
    }
    const perf::DeviceProfile more = measure_copies(control, device, larger, 0.1);
    EXPECT_GT(more.to_host_gbps, 1.2 * base.to_host_gbps);
    EXPECT_GT(more.to_device_gbps, 1.2 * base.to_device_gbps);
    const perf::DeviceProfile both = measure_copies(control, device, two, 0.1);
    EXPECT_LE(both.to_host_gbps, 8e-9 * 200000 / least_seconds) << "two copies, each late";
  });
}

TEST(CalibrateDevice, WhatADeviceDoesIsDoneWhenItIs) {
  using Clock = std::chrono::steady_clock;
  const c10::Device device = late_device(0);
  at::Tensor there = at::zeros({1000}).to(device);
  const at::Tensor ones = at::ones({1000}).to(device);
  DoneOnDevice done(device);
  std::vector<int> order;
  const auto begin = Clock::now();
  Clock::time_point told, came;
  there.copy_(ones, /*non_blocking=*/true);
  done.then([&] {
    order.push_back(1);
    came = Clock::now();
  });
  done.then([&] { order.push_back(2); });
  told = Clock::now();
  EXPECT_TRUE(order.empty() || told - begin >= kLate) << "it cannot have been copied yet";
  done.wait();
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_GE(came - begin, kLate);

  DoneOnDevice at_once(c10::kCPU);
  int calls = 0;
  at_once.then([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  at_once.wait();
}

TEST(CalibrateDevice, DevicesThatAreNotThereAreRefused) {
  EXPECT_TRUE(device_of("cpu").is_cpu());
  for (const char* name : {"gpu", "cuda:", "", "privateuseone:4"})
    EXPECT_THROW(device_of(name), UsageError) << name;
  EXPECT_EQ(device_of("privateuseone:2", 1), late_device(2));
  EXPECT_EQ(device_of("privateuseone", 5), late_device(5 % kLateDevices));
}

}  // namespace
}  // namespace accordion::bench
