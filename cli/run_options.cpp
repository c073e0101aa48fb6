#include "cli/run_options.h"

#include <cstdlib>

#include "accordion/data/dataset.h"
#include "accordion/run/replay.h"
#include "accordion/train/data_options.h"

namespace accordion::cli {

TrainOptions check_run_options(const TrainOptions& given, int workers) {
  const TrainOptions options = resolve(given);
  check_name("train", "data", options.data, one_of(dataset_names()));
  check_workers(options, workers);
  check_data(options, dataset_facts(options.data), workers);
  return options;
}

std::filesystem::path data_root() {
  return default_data_root(std::getenv("ACCORDION_DATA"), std::getenv("HOME"));
}

}  // namespace accordion::cli
