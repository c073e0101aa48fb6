// Devices that are late on purpose, for tests: their memory is the host's, but what is copied to, from or on them without
// waiting is copied milliseconds later, in the order of its stream. Whoever forgets to wait reads what was there before.
// Everything else is computed by the CPU, when the current stream has done what it was told.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>

#include "accordion/comm/communicator.h"

namespace accordion {

// What copies that nobody waits for take.
inline constexpr auto kLate = std::chrono::milliseconds(8);

// One for each rank: autograd has a thread a device, which ranks of one process would hold up for each other.
inline constexpr int kLateDevices = 4;
inline c10::Device late_device(int rank) {
  return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(rank)};
}

// Reduces on a rank's device, late; over a communicator that nobody else uses meanwhile.
class LateProcessGroup final : public c10d::ProcessGroup {
 public:
  explicit LateProcessGroup(Communicator& communicator);

  const std::string getBackendName() const override { return "late"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override;

  int calls = 0;

 private:
  Communicator& communicator_;
};

}  // namespace accordion
