// The data sets that Accordion knows: their files, where these are looked for, and what they hold.
#pragma once

#include <string>
#include <vector>

#include "accordion/data/dataset.h"

namespace accordion {

enum class Format { kIdx, kCifar10, kCifar100, kTokens, kClicks };

struct KnownDataset {
  std::string name;
  Format format;
  DatasetFacts facts;
  // The names its files go by, each list complete: training files, then as many test files as the format has.
  // None if the data set is made up.
  std::vector<std::vector<std::string>> namings = {};
  std::vector<std::string> folders = {};  // the data set's own, as its publisher or torchvision names it
  std::string system_folder = {};
  std::vector<float> mean = {}, deviation = {};  // of images
  std::string how_to_get = {};
};

const std::vector<KnownDataset>& known_datasets();

// Throws UsageError for a name that is not known.
const KnownDataset& known_dataset(const std::string& name);

}  // namespace accordion
