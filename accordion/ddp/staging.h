// Host memory for gradients that lie on a device: copies run on streams of their own, beside backward. Only c10's generic
// streams and events are used, so any device that torch knows will do.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace accordion {

// Host memory of the same shape and type. Copies from and to pinned memory hold up neither host nor device; not every device
// has it.
at::Tensor host_memory(const at::Tensor& like);

// Returns when the device has come that far.
void wait_for(const c10::Event& event);

class Staging {
 public:
  explicit Staging(c10::Device device);

  // A buffer's place in host memory.
  struct Staged {
    at::Tensor host;
    c10::Event arrived, left;
    explicit Staged(const at::Tensor& like);
  };

  // Starts to copy what the current stream, as far as it has been told by now, leaves in the buffer. The host sees it when
  // `arrived` has come.
  std::shared_ptr<Staged> fetch(const at::Tensor& buffer);

  // Starts to copy it back, and calls `then` with the current stream set to the one that does: what is recorded there comes
  // after the copy. May be called by another thread.
  void give_back(const std::shared_ptr<Staged>& staged, at::Tensor buffer, const std::function<void()>& then);

 private:
  std::shared_ptr<Staged> room_for(const at::Tensor& buffer);

  c10::Device device_;
  c10::Stream in_, out_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Staged>>
      free_;  // Kept for their memory, which is pinned where the device has such.
};

}  // namespace accordion
