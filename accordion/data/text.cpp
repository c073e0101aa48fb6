#include "accordion/data/text.h"

#include <span>

#include "accordion/base/hash.h"

namespace accordion {

void TextSet::add_to(Hash& hash) const {
  hash.add(vocabulary.size());
  for (const std::string& word : vocabulary) hash.add(word);
  hash.add(std::as_bytes(std::span(train))).add(std::as_bytes(std::span(test)));
}

}  // namespace accordion
