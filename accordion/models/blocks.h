// Pieces that several networks are made of.
#pragma once

#include <span>
#include <string_view>

#include "accordion/data/input_shape.h"
#include "accordion/models/network.h"

namespace accordion {

enum class Bias { kNo, kYes };

// A convolution that keeps the image's size, or divides it by the stride.
torch::nn::Conv2d conv(int in, int out, int kernel, int stride, Bias bias);

torch::nn::ReLU relu_in_place();

class ConvNormReluImpl final : public torch::nn::Module {
 public:
  ConvNormReluImpl(int in, int out, int kernel, int stride, Bias bias);
  torch::Tensor forward(torch::Tensor x);

 private:
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d norm_;
};
TORCH_MODULE(ConvNormRelu);

// What blocks of the pre-activation kind are made of.
class NormReluConvImpl final : public torch::nn::Module {
 public:
  NormReluConvImpl(int in, int out, int kernel, int stride, Bias bias);
  torch::Tensor forward(torch::Tensor x);

 private:
  torch::nn::BatchNorm2d norm_;
  torch::nn::Conv2d conv_;
};
TORCH_MODULE(NormReluConv);

// Appends stages of blocks, as many as there are widths; each stage but the first halves the image. Returns
// the channels that come out.
template <class Block>
int add_stages(torch::nn::Sequential& stages, int in, std::span<const int> widths, int blocks) {
  for (std::size_t stage = 0; stage < widths.size(); ++stage)
    for (int block = 0; block < blocks; ++block) {
      stages->push_back(std::make_shared<Block>(in, widths[stage], block == 0 && stage > 0 ? 2 : 1));
      in = widths[stage];
    }
  return in;
}

// The mean over an image, whatever its size: [batch, channels].
torch::Tensor global_average(const torch::Tensor& images);

// Throws UsageError for images smaller than smallest x smallest, naming the model and its reason.
void require_size(std::string_view model, const ImageShape& input, int smallest, std::string_view reason);

}  // namespace accordion
