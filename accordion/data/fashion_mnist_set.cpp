#include "accordion/data/catalogue.h"
#include "accordion/data/idx.h"

namespace accordion {

KnownDataset fashion_mnist_set() {
  const ImageShape shape{1, 28, 28, 10};
  return {.name = "fashion-mnist",
          .facts = {shape, 60000, 10000},
          .namings = {kIdxFiles},
          .folders = {"fashion-mnist", "FashionMNIST/raw"},
          .system_folder = "/usr/share/datasets/fashion-mnist",
          .how_to_get = "apt-get install dataset-fashion-mnist",
          .load = [=](const auto& files) {
            return read_idx_set("fashion-mnist", files, shape, 0.2860f, 0.3530f);
          }};
}

}  // namespace accordion
