// The devices of late_device_testing.h for Python, with a backend of c10d that reduces on them: it stages to Gloo, on a stream of its
// own, as NCCL works on one. Importing it is enough for torch.device("privateuseone:0") to work.
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/extension.h>
#include <torch/version.h>

#include <atomic>

#include "accordion/comm/c10d_compat.h"
#include "accordion/ddp/late_device_testing.h"

namespace py = pybind11;

namespace accordion {
namespace {

#if TORCH_VERSION_MAJOR >= 2
using Backend = c10d::Backend;
#else
using Backend = c10d::ProcessGroup;  // Of all devices, the host's memory too.
#endif
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

std::atomic<int> sums = 0;  // Of this process, on a device.

class LateBackend final : public Backend {
 public:
  explicit LateBackend(c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo)
      : Backend(gloo->getRank(), gloo->getSize()),
        gloo_(std::move(gloo)),
        stream_(late_stream(late_device(0))) {}

  const std::string getBackendName() const override { return "late"; }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    sums += !tensors[0].device().is_cpu();
    return staged(tensors, [gloo = gloo_, options](Tensors& host) { return gloo->allreduce(host, options); });
  }
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return staged(tensors, [gloo = gloo_, options](Tensors& host) { return gloo->broadcast(host, options); });
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    Tensors all = outputs[0];
    all.push_back(inputs[0]);
    return staged(all, [gloo = gloo_, options](Tensors& host) {
      Tensors in = {host.back()};
      std::vector<Tensors> out = {{host.begin(), host.end() - 1}};
      return gloo->allgather(out, in, options);
    });
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    drain();
    return gloo_->barrier(options);
  }

 private:
  template <class Collective>
  WorkPtr staged(Tensors& tensors, Collective collective) {
    if (!tensors[0].device().is_cpu())
      return late_work(tensors, stream_, [collective](Tensors& host) { collective(host)->wait(); });
    drain();
    return collective(tensors);
  }
  // Gloo goes by the order of calls, which is then the same on every rank.
  void drain() { c10::impl::VirtualGuardImpl(stream_.device_type()).synchronizeStream(stream_); }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  c10::Stream stream_;
};

}  // namespace
}  // namespace accordion

PYBIND11_MODULE(late_device, m) {
  using namespace accordion;
  m.def("backend", [](c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo) -> c10::intrusive_ptr<Backend> {
    return c10::make_intrusive<LateBackend>(std::move(gloo));
  });
  m.def(
      "sums", [] { return sums.load(); }, "How often a backend has reduced on a device.");
}
