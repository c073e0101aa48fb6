// The image data sets by name: where their files are, what they hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accordion/data/images.h"

namespace accordion {

struct Dataset {
  std::string name;
  Images train, test;
  std::vector<float> mean, deviation;  // per channel, of pixels scaled to [0, 1]
};

std::vector<std::string> dataset_names();

// Where data sets are kept unless the user says otherwise: $ACCORDION_DATA, or else .cache/accordion in
// $HOME. The arguments are those two variables, or null. Empty if neither is set.
std::filesystem::path default_data_root(const char* accordion_data, const char* home);

// The folder that holds the data set's files. `data_dir`, if not empty, is that folder or its parent;
// otherwise `data_root`/NAME is tried, and the system's folder if a package installs the data set.
std::filesystem::path find_dataset(const std::string& name, const std::filesystem::path& data_dir,
                                   const std::filesystem::path& data_root);

Dataset load_dataset(const std::string& name, const std::filesystem::path& data_dir,
                     const std::filesystem::path& data_root);

// Equal for equal data, on every rank.
std::uint64_t fingerprint(const Dataset&);

}  // namespace accordion
