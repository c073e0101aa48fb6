#include "accordion/compress/tensor.h"

namespace accordion {

std::size_t Shape::count() const {
  std::size_t n = 1;
  for (std::int64_t dim : dims) n *= static_cast<std::size_t>(dim);
  return n;
}

std::size_t Shape::rows() const {
  return dims.empty() ? 1 : static_cast<std::size_t>(dims[0]);
}

std::vector<std::string> names_of(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : tensors) names.push_back(tensor.name);
  return names;
}

std::size_t parameter_count(const std::vector<TensorInfo>& tensors) {
  std::size_t count = 0;
  for (const TensorInfo& tensor : tensors) count += tensor.shape.count();
  return count;
}

}  // namespace accordion
