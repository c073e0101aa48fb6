#include "accordion/train/tensor_arrays.h"

#include <cstring>
#include <set>

#include "accordion/base/error.h"

namespace accordion {
namespace {

constexpr std::pair<const char*, torch::ScalarType> kTypes[] = {
    {"F64", torch::kFloat64}, {"F32", torch::kFloat32}, {"F16", torch::kFloat16}, {"BF16", torch::kBFloat16},
    {"I64", torch::kInt64},   {"I32", torch::kInt32},   {"I16", torch::kInt16},   {"I8", torch::kInt8},
    {"U8", torch::kUInt8},    {"BOOL", torch::kBool}};

const char* type_name(const torch::Tensor& tensor, const std::string& name) {
  for (const auto& [text, type] : kTypes)
    if (type == tensor.scalar_type()) return text;
  throw Error(name + ": tensors of this type cannot be saved");
}

torch::ScalarType type_of(const Array& array, const std::string& name) {
  for (const auto& [text, type] : kTypes)
    if (text == array.dtype) return type;
  throw Error(name + ": of type " + array.dtype + ", which tensors do not have here");
}

template <class Visit>
void each_tensor(const torch::nn::Module& module, const Visit& visit) {
  for (const auto& item : module.named_parameters()) visit(item.key(), item.value());
  for (const auto& item : module.named_buffers()) visit(item.key(), item.value());
}

}  // namespace

void TensorArrays::add(const std::string& name, const torch::Tensor& tensor) {
  const torch::Tensor dense = kept_.emplace_back(tensor.detach().contiguous());
  arrays_[name] = {type_name(dense, name),
                   dense.sizes().vec(),
                   {static_cast<const std::byte*>(dense.data_ptr()), dense.nbytes()}};
}

void TensorArrays::add_module(const std::string& prefix, const torch::nn::Module& module) {
  each_tensor(module,
              [&](const std::string& name, const torch::Tensor& tensor) { add(prefix + name, tensor); });
}

torch::Tensor tensor_of(const Array& array, const std::string& name) {
  const torch::Tensor tensor = torch::empty(array.shape, type_of(array, name));
  if (!array.bytes.empty()) std::memcpy(tensor.data_ptr(), array.bytes.data(), array.bytes.size());
  return tensor;
}

void copy_into(torch::Tensor tensor, const ArrayFile& file, const std::string& name) {
  const Array& array = file.at(name);
  const std::string where = file.path().string() + ": " + name;
  if (array.shape != tensor.sizes().vec() || type_of(array, where) != tensor.scalar_type()) {
    const auto text = [](const auto& sizes) {
      std::string list;
      for (const std::int64_t size : sizes) list += (list.empty() ? "" : ", ") + std::to_string(size);
      return "[" + list + "]";
    };
    throw Error(where + " is " + array.dtype + " " + text(array.shape) + ", expected " +
                type_name(tensor, where) + " " + text(tensor.sizes()));
  }
  torch::NoGradGuard no_grad;
  tensor.copy_(tensor_of(array, where));
}

void copy_into(torch::nn::Module& module, const ArrayFile& file, const std::string& prefix) {
  each_tensor(module, [&](const std::string& name, const torch::Tensor& tensor) {
    copy_into(tensor, file, prefix + name);
  });
}

void load_model(torch::nn::Module& module, const std::filesystem::path& path) {
  const ArrayFile file(path);
  std::set<std::string> names;
  each_tensor(module, [&](const std::string& name, const torch::Tensor&) { names.insert(name); });
  for (const auto& [name, array] : file.arrays())
    if (!names.count(name)) throw Error(path.string() + ": has " + name + ", which this model has not");
  copy_into(module, file, "");
}

}  // namespace accordion
