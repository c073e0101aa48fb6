#include "cli/run_options.h"

#include <cstdlib>

#include "accordion/data/dataset.h"
#include "accordion/models/zoo.h"
#include "accordion/train/replay.h"

namespace accordion::cli {

void check_run_options(const TrainOptions& options) {
  check_train_options(options);
  if (!options.replay.empty()) replayed_options(options.replay);
  parse_model(options.model);
  check_name("train", "data", options.data, one_of(dataset_names()));
}

std::filesystem::path data_root() {
  return default_data_root(std::getenv("ACCORDION_DATA"), std::getenv("HOME"));
}

}  // namespace accordion::cli
