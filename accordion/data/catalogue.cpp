#include "accordion/data/catalogue.h"

#include "accordion/base/error.h"
#include "accordion/base/names.h"
#include "accordion/data/cifar.h"
#include "accordion/data/clicks.h"

namespace accordion {
namespace {

const std::vector<std::vector<std::string>> kIdxFiles = {{"train-images-idx3-ubyte",
                                                          "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                                          "t10k-labels-idx1-ubyte"}};

}  // namespace

const std::vector<KnownDataset>& known_datasets() {
  static const std::vector<KnownDataset> known = {
      {.name = "fashion-mnist",
       .format = Format::kIdx,
       .facts = {ImageShape{1, 28, 28, 10}, 60000, 10000},
       .namings = kIdxFiles,
       .folders = {"fashion-mnist", "FashionMNIST/raw"},
       .system_folder = "/usr/share/datasets/fashion-mnist",
       .mean = {0.2860f},
       .deviation = {0.3530f},
       .how_to_get = "apt-get install dataset-fashion-mnist"},
      {.name = "mnist",
       .format = Format::kIdx,
       .facts = {ImageShape{1, 28, 28, 10}, 60000, 10000},
       .namings = kIdxFiles,
       .folders = {"mnist", "MNIST/raw"},
       .mean = {0.1307f},
       .deviation = {0.3081f},
       .how_to_get = "accordion data mnist"},
      {.name = "cifar10",
       .format = Format::kCifar10,
       .facts = {ImageShape{kCifarChannels, kCifarSide, kCifarSide, 10}, 50000, 10000},
       .namings = {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                    "data_batch_5.bin", "test_batch.bin"}},
       .folders = {"cifar10", "cifar-10-batches-bin"},
       .mean = {0.4914f, 0.4824f, 0.4467f},
       .deviation = {0.2471f, 0.2435f, 0.2616f},
       .how_to_get = "accordion data cifar10"},
      {.name = "cifar100",
       .format = Format::kCifar100,
       .facts = {ImageShape{kCifarChannels, kCifarSide, kCifarSide, 100}, 50000, 10000},
       .namings = {{"train.bin", "test.bin"}},
       .folders = {"cifar100", "cifar-100-binary"},
       .mean = {0.5071f, 0.4865f, 0.4409f},
       .deviation = {0.2673f, 0.2564f, 0.2762f},
       .how_to_get =
           "take cifar-100-binary.tar.gz from www.cs.toronto.edu/~kriz/cifar.html and put its train.bin "
           "and test.bin into one of these folders"},
      // Its third file, wiki.valid.tokens, is for choosing settings; nothing here reads it.
      {.name = "wikitext2",
       .format = Format::kTokens,
       .facts = {TextShape{33278}, 2088628, 245569},
       .namings = {{"wiki.train.tokens", "wiki.test.tokens"}, {"train.txt", "test.txt"}},
       .folders = {"wikitext2", "wikitext-2"},
       .how_to_get = "no package registry carries it. Take wikitext-2-v1.zip (not the raw one) from "
                     "wikitext.smerity.com and put its wiki.train.tokens and wiki.test.tokens (or, as some "
                     "copies name them, train.txt and test.txt) into one of these folders. Its licence is CC "
                     "BY-SA 3.0"},
      {.name = "sotu",
       .format = Format::kTokens,
       .facts = {TextShape{14267}, 1786533, 193030},
       .namings = {{"sotu.train.tokens", "sotu.test.tokens"}},
       .folders = {"sotu"},
       .how_to_get = "accordion data sotu"},
      {.name = "clicks",
       .format = Format::kClicks,
       .facts = {.input = TableShape{kClickNumbers, {kClickTables.begin(), kClickTables.end()}},
                 .train_samples = kClickTrainRows,
                 .test_samples = kClickTestRows,
                 .synthetic = true}}};
  return known;
}

const KnownDataset& known_dataset(const std::string& name) {
  for (const KnownDataset& known : known_datasets())
    if (known.name == name) return known;
  throw UsageError(unknown_name("data set", name, dataset_names()));
}

}  // namespace accordion
