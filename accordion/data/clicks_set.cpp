#include "accordion/data/catalogue.h"
#include "accordion/data/clicks.h"

namespace accordion {

KnownDataset clicks_set() {
  return {.name = "clicks",
          .facts = {.input = TableShape{kClickNumbers, {kClickTables.begin(), kClickTables.end()}},
                    .train_samples = kClickTrainRows,
                    .test_samples = kClickTestRows,
                    .synthetic = true},
          .load = [](const auto&) { return make_clicks(); }};
}

}  // namespace accordion
