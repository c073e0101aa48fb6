#include "accordion/data/table.h"

#include <span>

#include "accordion/base/hash.h"

namespace accordion {
namespace {

void add(Hash& hash, const Table& table) {
  hash.add(static_cast<std::uint64_t>(table.numbers)).add(std::as_bytes(std::span(table.tables)));
  hash.add(std::as_bytes(std::span(table.values))).add(std::as_bytes(std::span(table.category)));
  hash.add(std::as_bytes(std::span(table.labels)));
}

}  // namespace

void Table::resize(std::size_t count) {
  values.resize(count * static_cast<std::size_t>(numbers));
  category.resize(count * tables.size());
  labels.resize(count);
}

void TableSet::add_to(Hash& hash) const {
  add(hash, train);
  add(hash, test);
}

}  // namespace accordion
