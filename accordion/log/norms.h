// What a controller needs of a run that is over: each epoch's learning rate and the norms of its layers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace accordion {

struct RecordedNorms {
  struct Epoch {
    int epoch;
    double lr;
    std::vector<double> norms;  // One a layer.
  };
  std::vector<std::string> layers;
  std::vector<Epoch> epochs;  // 0, 1, 2, ...
};

// Of a run folder, from its epochs.jsonl.
RecordedNorms read_run_norms(const std::filesystem::path& folder);

// Of a table with the header epoch,layer,norm,lr and one row for each epoch and layer.
RecordedNorms read_csv_norms(const std::filesystem::path& file);

}  // namespace accordion
