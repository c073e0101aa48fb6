#include "accordion/models/blocks.h"

#include <string>

#include "accordion/base/error.h"

namespace accordion {

namespace nn = torch::nn;

nn::Conv2d conv(int in, int out, int kernel, int stride, Bias bias) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(bias == Bias::kYes));
}

nn::ReLU relu_in_place() {
  return nn::ReLU(nn::ReLUOptions(/*inplace=*/true));
}

ConvNormReluImpl::ConvNormReluImpl(int in, int out, int kernel, int stride, Bias bias)
    : conv_(register_module("conv", conv(in, out, kernel, stride, bias))),
      norm_(register_module("norm", nn::BatchNorm2d(out))) {}

torch::Tensor ConvNormReluImpl::forward(torch::Tensor x) {
  return norm_(conv_(x)).relu_();
}

NormReluConvImpl::NormReluConvImpl(int in, int out, int kernel, int stride, Bias bias)
    : norm_(register_module("norm", nn::BatchNorm2d(in))),
      conv_(register_module("conv", conv(in, out, kernel, stride, bias))) {}

torch::Tensor NormReluConvImpl::forward(torch::Tensor x) {
  return conv_(norm_(x).relu_());
}

torch::Tensor global_average(const torch::Tensor& images) {
  return images.mean({2, 3});
}

void require_size(std::string_view model, const ImageShape& input, int smallest, std::string_view reason) {
  if (input.height >= smallest && input.width >= smallest) return;
  const auto size = [](int height, int width) {
    return std::to_string(height) + "x" + std::to_string(width);
  };
  throw UsageError(std::string(model) + ": images of " + size(input.height, input.width) +
                   ", expected at least " + size(smallest, smallest) + ": " + std::string(reason));
}

}  // namespace accordion
