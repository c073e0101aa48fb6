#include "accordion/data/catalogue.h"

#include "accordion/base/error.h"
#include "accordion/base/names.h"

namespace accordion {

KnownDataset fashion_mnist_set();
KnownDataset mnist_set();
KnownDataset cifar10_set();
KnownDataset cifar100_set();
KnownDataset wikitext2_set();
KnownDataset sotu_set();
KnownDataset clicks_set();

const std::vector<KnownDataset>& known_datasets() {
  static const std::vector<KnownDataset> known = {fashion_mnist_set(), mnist_set(),     cifar10_set(),
                                                  cifar100_set(),      wikitext2_set(), sotu_set(),
                                                  clicks_set()};
  return known;
}

const KnownDataset& known_dataset(const std::string& name) {
  for (const KnownDataset& known : known_datasets())
    if (known.name == name) return known;
  throw UsageError(unknown_name("data set", name, dataset_names()));
}

}  // namespace accordion
