// What is known of a tensor before there is a gradient: its name and its shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace accordion {

// The matrix view of a layer: dimension 0 against all others.
struct Shape {
  std::vector<std::int64_t> dims;

  std::size_t count() const;
  std::size_t rows() const;
  std::size_t columns() const { return rows() == 0 ? 0 : count() / rows(); }
};

struct TensorInfo {
  std::string name;
  Shape shape;
};

std::vector<std::string> names_of(const std::vector<TensorInfo>& tensors);
std::size_t parameter_count(const std::vector<TensorInfo>& tensors);

}  // namespace accordion
