// The data sets that Accordion knows: their files, where these are looked for, and what they hold. Each is
// described in a source of its own, NAME_set.cpp.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "accordion/data/dataset.h"
#include "accordion/data/fetch.h"

namespace accordion {

struct KnownDataset {
  std::string name;
  DatasetFacts facts;
  // The names its files go by, each list complete. None if the data set is made up.
  std::vector<std::vector<std::string>> namings = {};
  std::vector<std::string> folders = {};  // the data set's own, as its publisher or torchvision names it
  std::string system_folder = {};
  std::string how_to_get = {};
  std::optional<Recipe> recipe = {};  // Where it can be fetched from a registry.
  // From the files, in the order of `namings`.
  std::function<DataContents(const std::vector<std::filesystem::path>& files)> load;
};

const std::vector<KnownDataset>& known_datasets();

// Throws UsageError for a name that is not known.
const KnownDataset& known_dataset(const std::string& name);

}  // namespace accordion
