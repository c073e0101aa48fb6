// Everything that differs between libtorch 1.13 and 2.x in making a process group, and nothing else.
#pragma once

// Hides Gloo's header if undefined; not every libtorch's CMake files define it.
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <type_traits>
#include <utility>

namespace accordion::compat {

// Debian's 2.x is built without libuv and yet asks for it by default; 1.13 has no such option.
template <class Options>
void avoid_libuv(Options& options) {
  if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
}

#if TORCH_VERSION_MAJOR >= 2
// From 2.0 on, Gloo is a backend inside a process group that dispatches by device.
template <class Group = c10d::ProcessGroup>
c10::intrusive_ptr<c10d::ProcessGroup> wrap(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const c10::intrusive_ptr<c10d::ProcessGroupGloo>& gloo) {
  auto make = [&] {
    if constexpr (std::is_constructible_v<Group, c10::intrusive_ptr<c10d::Store>, int, int>)
      return c10::make_intrusive<Group>(store, rank, size);
    else
      return c10::make_intrusive<Group>(store, rank, size,
                                        c10::make_intrusive<typename Group::Options>("gloo"));
  };
  auto group = make();
  group->setBackend(c10::DeviceType::CPU, Group::BackendType::GLOO, gloo);
  return group;
}
#else
inline c10::intrusive_ptr<c10d::ProcessGroup> wrap(const c10::intrusive_ptr<c10d::Store>&, int, int,
                                                   const c10::intrusive_ptr<c10d::ProcessGroupGloo>& gloo) {
  return gloo;
}
#endif

}  // namespace accordion::compat
