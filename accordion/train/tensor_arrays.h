// torch's tensors as arrays of a file (log/safetensors.h), and back.
#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <string>

#include "accordion/log/safetensors.h"

namespace accordion {

// Arrays of tensors. They are views, so what is not contiguous is kept here, in a copy.
class TensorArrays {
 public:
  void add(const std::string& name, const torch::Tensor& tensor);
  // Parameters and buffers, under "prefix" and their names.
  void add_module(const std::string& prefix, const torch::nn::Module& module);

  Arrays& arrays() { return arrays_; }

 private:
  Arrays arrays_;
  std::vector<torch::Tensor> kept_;
};

// A tensor of its own.
torch::Tensor tensor_of(const Array& array, const std::string& name);

// Throws Error, led by the file's name, for an array that is missing or of another type or shape.
void copy_into(torch::Tensor tensor, const ArrayFile& file, const std::string& name);
void copy_into(torch::nn::Module& module, const ArrayFile& file, const std::string& prefix);

// From a file of a model's parameters and buffers by their names, as `accordion export` writes it, and nothing else.
void load_model(torch::nn::Module& module, const std::filesystem::path& path);

}  // namespace accordion
