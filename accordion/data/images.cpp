#include "accordion/data/images.h"

#include "accordion/base/hash.h"

namespace accordion {
namespace {

void add(Hash& hash, const Images& images) {
  for (int value : {images.channels, images.height, images.width, images.classes})
    hash.add(static_cast<std::uint64_t>(value));
  hash.add(std::as_bytes(std::span(images.pixels))).add(std::as_bytes(std::span(images.labels)));
}

}  // namespace

void Images::resize(std::size_t count) {
  pixels.resize(count * image_size());
  labels.resize(count);
}

void ImageSet::add_to(Hash& hash) const {
  add(hash, train);
  add(hash, test);
  hash.add(std::as_bytes(std::span(mean))).add(std::as_bytes(std::span(deviation)));
}

}  // namespace accordion
