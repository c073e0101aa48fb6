// libtorch 1.13 installs c10d/reducer.hpp without this header that it includes. The reducer only holds pointers to
// these types, so declaring them is enough. On the include path only where libtorch has no header of its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace torch::distributed::autograd {

class DistAutogradContext {
 public:
  using GradCallback = std::function<bool(at::Tensor&)>;
};
using ContextPtr = std::shared_ptr<DistAutogradContext>;

}  // namespace torch::distributed::autograd
