#include "accordion/models/vgg.h"

#include "accordion/models/blocks.h"

namespace accordion {
namespace {

namespace nn = torch::nn;

// Five stages of 3x3 convolutions, each ending in a pool that halves the image.
constexpr int kWidths[] = {64, 128, 256, 512, 512};
constexpr int kConvolutions[] = {2, 2, 4, 4, 4};

class Vgg final : public Network {
 public:
  Vgg(const Vgg19BnOptions& options, const ImageShape& input) {
    int in = input.channels;
    for (std::size_t stage = 0; stage < std::size(kWidths); ++stage) {
      const int out = options.scaled(kWidths[stage]);
      for (int i = 0; i < kConvolutions[stage]; ++i) {
        features_->push_back(conv(in, out, 3, 1, Bias::kYes));
        features_->push_back(nn::BatchNorm2d(out));
        features_->push_back(relu_in_place());
        in = out;
      }
      // Rounding up makes no difference at 32x32, and leaves something of 28x28.
      features_->push_back(nn::MaxPool2d(nn::MaxPool2dOptions(2).ceil_mode(true)));
    }
    register_module("features", features_);
    add_head(options, in, input.classes);
  }

  torch::Tensor forward(torch::Tensor x) override {
    return classifier_->forward(global_average(features_->forward(x)));
  }

 private:
  void add_head(const Vgg19BnOptions& options, int in, int classes) {
    const bool wide = options.head == "published" ? classes > 10 : options.head == "4096";
    const int hidden = options.scaled(wide ? 4096 : 512);
    for (const int from : {in, hidden}) {
      classifier_->push_back(nn::Dropout());
      classifier_->push_back(nn::Linear(from, hidden));
      classifier_->push_back(relu_in_place());
    }
    // The wide head drops before its last layer too.
    if (wide) classifier_->push_back(nn::Dropout());
    classifier_->push_back(nn::Linear(hidden, classes));
    register_module("classifier", classifier_);
  }

  nn::Sequential features_, classifier_;
};

}  // namespace

std::shared_ptr<Network> make(const Vgg19BnOptions& options, const ImageShape& input) {
  return std::make_shared<Vgg>(options, input);
}

}  // namespace accordion
