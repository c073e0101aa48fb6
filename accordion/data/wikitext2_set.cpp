#include "accordion/data/catalogue.h"
#include "accordion/data/tokens.h"

namespace accordion {

// Its third file, wiki.valid.tokens, is for choosing settings; nothing here reads it.
KnownDataset wikitext2_set() {
  return {.name = "wikitext2",
          .facts = {TextShape{33278}, 2088628, 245569},
          .namings = {{"wiki.train.tokens", "wiki.test.tokens"}, {"train.txt", "test.txt"}},
          .folders = {"wikitext2", "wikitext-2"},
          .how_to_get =
              "no package registry carries it. Take wikitext-2-v1.zip (not the raw one) from "
              "wikitext.smerity.com and put its wiki.train.tokens and wiki.test.tokens (or, as some copies "
              "name them, train.txt and test.txt) into one of these folders. Its licence is CC BY-SA 3.0",
          .load = [](const auto& files) { return read_tokens(files[0], files[1]); }};
}

}  // namespace accordion
