#include "accordion/data/catalogue.h"
#include "accordion/data/cifar.h"

namespace accordion {

KnownDataset cifar100_set() {
  return {.name = "cifar100",
          .facts = {ImageShape{kCifarChannels, kCifarSide, kCifarSide, 100}, 50000, 10000},
          .namings = {{"train.bin", "test.bin"}},
          .folders = {"cifar100", "cifar-100-binary"},
          .how_to_get =
              "take cifar-100-binary.tar.gz from www.cs.toronto.edu/~kriz/cifar.html and put its train.bin "
              "and test.bin into one of these folders",
          .load = [](const auto& files) {
            return ImageSet{.train = read_cifar100(files[0]),
                            .test = read_cifar100(files[1]),
                            .mean = {0.5071f, 0.4865f, 0.4409f},
                            .deviation = {0.2673f, 0.2564f, 0.2762f}};
          }};
}

}  // namespace accordion
