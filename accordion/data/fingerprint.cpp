// Every part of a data set, hashed in a fixed order.
#include <span>

#include "accordion/base/hash.h"
#include "accordion/data/dataset.h"

namespace accordion {
namespace {

void add(Hash& hash, const Images& images) {
  for (int value : {images.channels, images.height, images.width, images.classes})
    hash.add(static_cast<std::uint64_t>(value));
  hash.add(std::as_bytes(std::span(images.pixels))).add(std::as_bytes(std::span(images.labels)));
}

void add(Hash& hash, const ImageSet& images) {
  add(hash, images.train);
  add(hash, images.test);
  hash.add(std::as_bytes(std::span(images.mean))).add(std::as_bytes(std::span(images.deviation)));
}

void add(Hash& hash, const TextSet& text) {
  hash.add(text.vocabulary.size());
  for (const std::string& word : text.vocabulary) hash.add(word);
  hash.add(std::as_bytes(std::span(text.train))).add(std::as_bytes(std::span(text.test)));
}

void add(Hash& hash, const Table& table) {
  hash.add(static_cast<std::uint64_t>(table.numbers)).add(std::as_bytes(std::span(table.tables)));
  hash.add(std::as_bytes(std::span(table.values))).add(std::as_bytes(std::span(table.category)));
  hash.add(std::as_bytes(std::span(table.labels)));
}

void add(Hash& hash, const TableSet& tables) {
  add(hash, tables.train);
  add(hash, tables.test);
}

}  // namespace

std::uint64_t fingerprint(const Dataset& dataset) {
  Hash hash;
  hash.add(dataset.name);
  std::visit([&](const auto& contents) { add(hash, contents); }, dataset.contents);
  return hash.value();
}

}  // namespace accordion
