#include "accordion/compress/compressor.h"

#include "accordion/base/hash.h"

namespace accordion {

namespace {

RandomKey key(const Context& context, std::string_view purpose, std::uint64_t rank) {
  return RandomKey{Hash()
                       .add(context.seed)
                       .add(purpose)
                       .add(static_cast<std::uint64_t>(context.tensor))
                       .add(context.step)
                       .add(rank)
                       .value()};
}

}  // namespace

RandomKey Context::private_key(std::string_view purpose) const {
  return key(*this, purpose, static_cast<std::uint64_t>(rank));
}

RandomKey Context::shared_key(std::string_view purpose) const {
  return key(*this, purpose, ~std::uint64_t{0});
}

std::size_t element_bytes(Element element) {
  switch (element) {
    case Element::kByte:
    case Element::kInt8:
      return 1;
    case Element::kHalf:
    case Element::kBfloat16:
    case Element::kInt16:
      return 2;
    case Element::kFloat:
      return 4;
  }
  return 0;
}

}  // namespace accordion
