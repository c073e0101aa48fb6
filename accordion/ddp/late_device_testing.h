// Devices that are late on purpose, for tests: their memory is the host's, but what is copied to, from or on them without
// waiting is copied milliseconds later, in the order of its stream. Whoever forgets to wait reads what was there before.
// Everything else is computed by the CPU, when the current stream has done what it was told.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <functional>
#include <vector>

namespace accordion {

// What copies that nobody waits for take.
inline constexpr auto kLate = std::chrono::milliseconds(8);

// One for each rank: autograd has a thread a device, which ranks of one process would hold up for each other.
inline constexpr int kLateDevices = 4;
inline c10::Device late_device(int rank) {
  return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(rank)};
}

// One that nobody else has.
c10::Stream late_stream(c10::Device device);

// The next time that this thread asks for memory there, there is none.
void refuse_late_memory_once();

// What a process group of these devices gives back at once: `work` is done on the tensors' memory, as the host sees it, late, when the
// current stream has come to where it is now and `stream` to where it was.
c10::intrusive_ptr<c10d::Work> late_work(const std::vector<at::Tensor>& tensors, const c10::Stream& stream,
                                         std::function<void(std::vector<at::Tensor>& host)> work);

}  // namespace accordion
