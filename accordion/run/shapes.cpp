#include "accordion/run/shapes.h"

#include <cstdint>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/base/names.h"

namespace accordion {
namespace {

using Dims = std::vector<std::int64_t>;

class Tensors {
 public:
  void add(const std::string& name, Dims dims) { tensors_.push_back({name, Shape{std::move(dims)}}); }

  // A convolution or linear layer: its weight and, mostly, its bias.
  void layer(const std::string& name, Dims weight, bool bias = true) {
    const std::int64_t out = weight[0];
    add(name + ".weight", std::move(weight));
    if (bias) add(name + ".bias", {out});
  }

  void conv(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel, bool bias) {
    layer(name, {out, in, kernel, kernel}, bias);
  }

  void norm(const std::string& name, std::int64_t channels) { layer(name, {channels}); }

  std::vector<TensorInfo> take() { return std::move(tensors_); }

 private:
  std::vector<TensorInfo> tensors_;
};

std::string number(std::int64_t value) {
  return std::to_string(value);
}

// torchvision's ResNet-50 and ResNet-101 for ImageNet: bottlenecks of 1x1, 3x3, 1x1 that widen fourfold.
std::vector<TensorInfo> bottleneck_resnet(const std::vector<int>& blocks) {
  Tensors tensors;
  tensors.conv("conv1", 3, 64, 7, false);
  tensors.norm("bn1", 64);
  std::int64_t in = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::int64_t width = std::int64_t{64} << stage, out = 4 * width;
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::string name = "layer" + number(static_cast<std::int64_t>(stage) + 1) + "." + number(block);
      tensors.conv(name + ".conv1", in, width, 1, false);
      tensors.norm(name + ".bn1", width);
      tensors.conv(name + ".conv2", width, width, 3, false);
      tensors.norm(name + ".bn2", width);
      tensors.conv(name + ".conv3", width, out, 1, false);
      tensors.norm(name + ".bn3", out);
      if (in != out) {
        tensors.conv(name + ".downsample.0", in, out, 1, false);
        tensors.norm(name + ".downsample.1", out);
      }
      in = out;
    }
  }
  tensors.layer("fc", {1000, in});
  return tensors.take();
}

// The zoo's ResNet-18 for CIFAR-10 (resnet.cpp).
std::vector<TensorInfo> cifar_resnet18() {
  Tensors tensors;
  tensors.conv("stem", 3, 64, 3, false);
  tensors.norm("norm", 64);
  std::int64_t in = 64;
  for (std::int64_t block = 0; block < 8; ++block) {
    const std::int64_t out = std::int64_t{64} << block / 2;
    const std::string name = "stages." + number(block);
    tensors.conv(name + ".conv1", in, out, 3, false);
    tensors.norm(name + ".norm1", out);
    tensors.conv(name + ".conv2", out, out, 3, false);
    tensors.norm(name + ".norm2", out);
    if (in != out) {
      tensors.conv(name + ".shortcut.0", in, out, 1, false);
      tensors.norm(name + ".shortcut.1", out);
    }
    in = out;
  }
  tensors.layer("out", {10, in});
  return tensors.take();
}

// The zoo's VGG-19 with batch normalisation for CIFAR-10 (vgg.cpp).
std::vector<TensorInfo> cifar_vgg19bn() {
  constexpr std::int64_t kPool = 0;
  Tensors tensors;
  std::int64_t in = 3, place = 0;
  for (const std::int64_t out :
       std::vector<std::int64_t>{64,  64,  kPool, 128, 128,   kPool, 256, 256, 256, 256,  kPool,
                                 512, 512, 512,   512, kPool, 512,   512, 512, 512, kPool}) {
    if (out == kPool) {
      ++place;
      continue;
    }
    tensors.conv("features." + number(place), in, out, 3, true);
    tensors.norm("features." + number(place + 1), out);
    place += 3;  // The third is the ReLU.
    in = out;
  }
  tensors.layer("classifier.1", {512, 512});
  tensors.layer("classifier.4", {512, 512});
  tensors.layer("classifier.6", {10, 512});
  return tensors.take();
}

// BERT-base, uncased, with pooler.
std::vector<TensorInfo> bert_base() {
  constexpr std::int64_t kWidth = 768, kInner = 3072;
  Tensors tensors;
  tensors.add("embeddings.word_embeddings.weight", {30522, kWidth});
  tensors.add("embeddings.position_embeddings.weight", {512, kWidth});
  tensors.add("embeddings.token_type_embeddings.weight", {2, kWidth});
  tensors.norm("embeddings.LayerNorm", kWidth);
  for (int block = 0; block < 12; ++block) {
    const std::string name = "encoder.layer." + number(block);
    for (const char* part : {"query", "key", "value"})
      tensors.layer(name + ".attention.self." + part, {kWidth, kWidth});
    tensors.layer(name + ".attention.output.dense", {kWidth, kWidth});
    tensors.norm(name + ".attention.output.LayerNorm", kWidth);
    tensors.layer(name + ".intermediate.dense", {kInner, kWidth});
    tensors.layer(name + ".output.dense", {kWidth, kInner});
    tensors.norm(name + ".output.LayerNorm", kWidth);
  }
  tensors.layer("pooler.dense", {kWidth, kWidth});
  return tensors.take();
}

}  // namespace

std::vector<std::string> shape_names() {
  return {"resnet50", "resnet101", "resnet18", "vgg19bn", "bert-base"};
}

std::vector<TensorInfo> model_shapes(const std::string& name) {
  if (name == "resnet50") return bottleneck_resnet({3, 4, 6, 3});
  if (name == "resnet101") return bottleneck_resnet({3, 4, 23, 3});
  if (name == "resnet18") return cifar_resnet18();
  if (name == "vgg19bn") return cifar_vgg19bn();
  if (name == "bert-base") return bert_base();
  throw UsageError(unknown_name("model", name, shape_names()));
}

}  // namespace accordion
