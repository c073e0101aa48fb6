// The chunked exchange: what a rank sends and receives does not grow with the number of ranks.
//
// A tensor is cut into one chunk per rank. Each rank encodes every chunk for its owner, the owner decodes
// what all ranks sent of its chunk, and encodes their mean once more for everyone. Any codec of one gathered
// round and fixed length can travel so, at the price of that second encoding.
#pragma once

#include <functional>
#include <memory>

#include "accordion/compress/compressor.h"

namespace accordion {

// The part of a tensor of n elements that rank `owner` answers for.
struct Chunk {
  std::size_t offset, count;
};
Chunk chunk_of(std::size_t n, int world, int owner);

using MakePiece = std::function<std::unique_ptr<Compressor>(const Shape&)>;
using PieceBytes = std::function<std::size_t(const Shape&)>;

// `to_owner` makes the codec of a chunk on its way to its owner, `from_owner` that of the result. With error
// feedback the owner keeps what the second encoding leaves, too.
std::unique_ptr<Compressor> make_chunked(const Shape& shape, int world, const MakePiece& to_owner,
                                         const MakePiece& from_owner);

std::size_t chunked_bytes(const Shape& shape, int world, const PieceBytes& to_owner,
                          const PieceBytes& from_owner);

}  // namespace accordion
