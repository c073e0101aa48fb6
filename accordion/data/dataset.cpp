#include "accordion/data/dataset.h"

#include <algorithm>
#include <span>

#include "accordion/base/error.h"
#include "accordion/base/hash.h"
#include "accordion/base/names.h"
#include "accordion/data/cifar.h"
#include "accordion/data/idx.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

enum class Format { kIdx, kCifar10, kCifar100 };

struct Known {
  std::string name;
  Format format;
  std::vector<std::string> files;    // training files, then as many test files as the format has
  std::vector<std::string> folders;  // the data set's own, as its publisher or torchvision names it
  std::string system_folder;
  std::vector<float> mean, deviation;
  std::string how_to_get;
};

constexpr int kIdxSide = 28;

const std::vector<std::string> kIdxFiles = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                            "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

const std::vector<Known>& known_datasets() {
  static const std::vector<Known> known = {
      {.name = "fashion-mnist",
       .format = Format::kIdx,
       .files = kIdxFiles,
       .folders = {"fashion-mnist", "FashionMNIST/raw"},
       .system_folder = "/usr/share/datasets/fashion-mnist",
       .mean = {0.2860f},
       .deviation = {0.3530f},
       .how_to_get = "apt-get install dataset-fashion-mnist"},
      {.name = "mnist",
       .format = Format::kIdx,
       .files = kIdxFiles,
       .folders = {"mnist", "MNIST/raw"},
       .system_folder = "",
       .mean = {0.1307f},
       .deviation = {0.3081f},
       .how_to_get = "accordion data mnist"},
      {.name = "cifar10",
       .format = Format::kCifar10,
       .files = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                 "data_batch_5.bin", "test_batch.bin"},
       .folders = {"cifar10", "cifar-10-batches-bin"},
       .system_folder = "",
       .mean = {0.4914f, 0.4824f, 0.4467f},
       .deviation = {0.2471f, 0.2435f, 0.2616f},
       .how_to_get = "accordion data cifar10"},
      {.name = "cifar100",
       .format = Format::kCifar100,
       .files = {"train.bin", "test.bin"},
       .folders = {"cifar100", "cifar-100-binary"},
       .system_folder = "",
       .mean = {0.5071f, 0.4865f, 0.4409f},
       .deviation = {0.2673f, 0.2564f, 0.2762f},
       .how_to_get =
           "take cifar-100-binary.tar.gz from www.cs.toronto.edu/~kriz/cifar.html and put its train.bin "
           "and test.bin into one of these folders"}};
  return known;
}

const Known& known_dataset(const std::string& name) {
  for (const Known& known : known_datasets())
    if (known.name == name) return known;
  throw UsageError(unknown_name("data set", name, dataset_names()));
}

// The file itself or its gzip; empty if there is neither.
fs::path existing(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored)) return file;
  const fs::path zipped = file.string() + ".gz";
  return fs::is_regular_file(zipped, ignored) ? zipped : fs::path();
}

std::vector<fs::path> places_to_look(const Known& known, const fs::path& data_dir,
                                     const fs::path& data_root) {
  std::vector<fs::path> places;
  const fs::path& parent = data_dir.empty() ? data_root : data_dir;
  if (!parent.empty())
    for (const std::string& folder : known.folders) places.push_back(parent / folder);
  if (!data_dir.empty())
    places.push_back(data_dir);
  else if (!known.system_folder.empty())
    places.emplace_back(known.system_folder);
  return places;
}

Images read_split(const Known& known, const fs::path& folder, bool train) {
  std::vector<fs::path> files;
  for (const std::string& file : known.files) files.push_back(existing(folder / file));
  switch (known.format) {
    case Format::kIdx:
      return train ? read_idx(files[0], files[1], 10) : read_idx(files[2], files[3], 10);
    case Format::kCifar10:
      return read_cifar10(train ? std::vector(files.begin(), files.end() - 1)
                                : std::vector(files.end() - 1, files.end()));
    case Format::kCifar100:
      return read_cifar100(files[train ? 0 : 1]);
  }
  throw Error("unreachable");
}

// CIFAR's size is part of its format; an IDX file can have any, and the models are built for one.
void check_size(const Known& known, const fs::path& folder, const Images& images) {
  if (known.format == Format::kIdx && (images.height != kIdxSide || images.width != kIdxSide))
    throw Error(known.name + ": images in " + folder.string() + " are " + std::to_string(images.height) +
                " x " + std::to_string(images.width) + ", expected 28 x 28");
}

void add(Hash& hash, const Images& images) {
  for (int value : {images.channels, images.height, images.width, images.classes})
    hash.add(static_cast<std::uint64_t>(value));
  hash.add(std::as_bytes(std::span(images.pixels))).add(std::as_bytes(std::span(images.labels)));
}

void add(Hash& hash, const ImageSet& images) {
  add(hash, images.train);
  add(hash, images.test);
  hash.add(std::as_bytes(std::span(images.mean))).add(std::as_bytes(std::span(images.deviation)));
}

void add(Hash& hash, const TextSet& text) {
  for (const std::string& word : text.vocabulary) hash.add(word);
  hash.add(std::as_bytes(std::span(text.train))).add(std::as_bytes(std::span(text.test)));
}

void add(Hash& hash, const Table& table) {
  hash.add(static_cast<std::uint64_t>(table.numbers)).add(std::as_bytes(std::span(table.tables)));
  hash.add(std::as_bytes(std::span(table.values))).add(std::as_bytes(std::span(table.category)));
  hash.add(std::as_bytes(std::span(table.labels)));
}

void add(Hash& hash, const TableSet& tables) {
  add(hash, tables.train);
  add(hash, tables.test);
}

InputShape shape_of(const ImageSet& set) {
  return ImageShape{set.train.channels, set.train.height, set.train.width, set.train.classes};
}

InputShape shape_of(const TextSet& set) {
  return TextShape{static_cast<int>(set.vocabulary.size())};
}

InputShape shape_of(const TableSet& set) {
  return TableShape{set.train.numbers, set.train.tables};
}

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const Known& known : known_datasets()) names.push_back(known.name);
  return names;
}

fs::path default_data_root(const char* accordion_data, const char* home) {
  const auto is_set = [](const char* value) { return value != nullptr && *value != '\0'; };
  if (is_set(accordion_data)) return accordion_data;
  if (is_set(home)) return fs::path(home) / ".cache" / "accordion";
  return {};
}

fs::path find_dataset(const std::string& name, const fs::path& data_dir, const fs::path& data_root) {
  const Known& known = known_dataset(name);
  std::error_code ignored;
  if (!data_dir.empty() && !fs::is_directory(data_dir, ignored))
    throw UsageError("data-dir=" + data_dir.string() + ", expected a folder with the files of " + name);
  std::string looked;
  for (const fs::path& place : places_to_look(known, data_dir, data_root)) {
    std::vector<std::string> missing;
    for (const std::string& file : known.files)
      if (existing(place / file).empty()) missing.push_back(file);
    if (missing.empty()) return place;
    looked += (looked.empty() ? "" : ", ") + place.string();
    if (missing.size() < known.files.size()) looked += " (which lacks " + missing.front() + ")";
  }
  throw Error("data set " + name + " not found; looked for " + known.files.front() + " and so on in " +
              (looked.empty() ? "no folder, as none was given" : looked) +
              ". To get it: " + known.how_to_get);
}

Dataset load_dataset(const std::string& name, const fs::path& data_dir, const fs::path& data_root) {
  const Known& known = known_dataset(name);
  const fs::path folder = find_dataset(name, data_dir, data_root);
  ImageSet images{.train = read_split(known, folder, true),
                  .test = read_split(known, folder, false),
                  .mean = known.mean,
                  .deviation = known.deviation};
  check_size(known, folder, images.train);
  check_size(known, folder, images.test);
  return {name, std::move(images)};
}

InputShape input_shape(const Dataset& dataset) {
  return std::visit([](const auto& contents) { return shape_of(contents); }, dataset.contents);
}

DatasetFacts dataset_facts(const std::string& name) {
  switch (known_dataset(name).format) {
    case Format::kIdx:
      return {ImageShape{1, kIdxSide, kIdxSide, 10}, 60000, 10000};
    case Format::kCifar10:
      return {ImageShape{kCifarChannels, kCifarSide, kCifarSide, 10}, 50000, 10000};
    case Format::kCifar100:
      return {ImageShape{kCifarChannels, kCifarSide, kCifarSide, 100}, 50000, 10000};
  }
  throw Error("unreachable");
}

std::uint64_t fingerprint(const Dataset& dataset) {
  Hash hash;
  hash.add(dataset.name);
  std::visit([&](const auto& contents) { add(hash, contents); }, dataset.contents);
  return hash.value();
}

}  // namespace accordion
