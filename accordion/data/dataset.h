// The data sets by name: where their files are, what they hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accordion/data/input_shape.h"

namespace accordion {

struct Dataset {
  std::string name;
  DataContents contents;
};

InputShape input_shape(const Dataset&);

// What is known of a data set without having it. Samples are images, tokens or rows.
struct DatasetFacts {
  InputShape input;
  std::size_t train_samples, test_samples;
  bool synthetic = false;  // Made up on the spot from a fixed seed: it has no files.
};

DatasetFacts dataset_facts(const std::string& name);
DatasetFacts facts_of(const Dataset&);

// Leaves only the first so many samples of the test set.
void limit_tests(Dataset&, std::size_t samples);

std::vector<std::string> dataset_names();

// Where data sets are kept unless the user says otherwise: $ACCORDION_DATA, or else .cache/accordion in
// $HOME. The arguments are those two variables, or null. Empty if neither is set.
std::filesystem::path default_data_root(const char* accordion_data, const char* home);

// The folder that holds the data set's files. `data_dir`, if not empty, is that folder or its parent;
// otherwise `data_root`/NAME is tried, and the system's folder if a package installs the data set. Empty for
// a synthetic data set, whatever the folders.
std::filesystem::path find_dataset(const std::string& name, const std::filesystem::path& data_dir,
                                   const std::filesystem::path& data_root);

Dataset load_dataset(const std::string& name, const std::filesystem::path& data_dir,
                     const std::filesystem::path& data_root);

// Equal for equal data, on every rank.
std::uint64_t fingerprint(const Dataset&);

}  // namespace accordion
