// round 0 := chunk: codec's message     -- one for each rank, of its chunk
// round 1 := result: codec's message    -- gathered; filled up with 0 to the length of the longest
#include "accordion/compress/chunked.h"

#include <algorithm>
#include <string>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/base/hash.h"

namespace accordion {
namespace {

// Whole words of any codec's bits; the last chunks may be short or empty.
constexpr std::size_t kAlign = 64;

Shape flat(std::size_t count) {
  return {{static_cast<std::int64_t>(count)}};
}

template <class T>
std::span<T> part_of(std::span<T> values, Chunk chunk) {
  return values.empty() ? values : values.subspan(chunk.offset, chunk.count);
}

class Chunked final : public Compressor {
 public:
  Chunked(const Shape& shape, int world, const MakePiece& to_owner, const MakePiece& from_owner)
      : n_(shape.count()), world_(world) {
    for (int owner = 0; owner < world; ++owner) {
      to_owner_.push_back(to_owner(flat(chunk(owner).count)));
      from_owner_.push_back(from_owner(flat(chunk(owner).count)));
    }
  }

  bool wants_feedback() const override { return to_owner_[0]->wants_feedback(); }
  int rounds() const override { return 2; }

  // The first chunk is the longest, and so are its messages.
  Round round(int i, const Context& context) const override {
    const Compressor& codec = i == 0 ? *to_owner_[index(context.piece)] : *from_owner_[0];
    return {i == 0 ? Pattern::kScatter : Pattern::kGather, Element::kByte,
            codec.round(0, within(context, i, i == 0 ? context.piece : 0, world_)).max_bytes};
  }

  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    if (i == 0) {
      const Chunk part = chunk(context.piece);
      const Feedback piece{part_of(feedback.gradient, part), part_of(feedback.residual, part),
                           part_of(feedback.next, part)};
      return to_owner_[index(context.piece)]->encode(0, within(context, 0, context.piece, world_), piece,
                                                     out);
    }
    encoded_ = true;
    result_.resize(chunk(context.rank).count);
    if (wants_feedback()) {
      owed_.resize(result_.size());
      next_owed_.resize(result_.size());
    }
    Encoded encoded = from_owner_[index(context.rank)]->encode(0, within(context, 1, context.rank, 1),
                                                               {result_, owed_, next_owed_}, out);
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(encoded.bytes), out.end(), std::byte{0});
    encoded.bytes = out.size();
    return encoded;
  }

  void decode(int i, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    if (messages.size() != static_cast<std::size_t>(world_))
      throw Error("chunked: " + std::to_string(messages.size()) + " messages, expected " +
                  std::to_string(world_));
    if (i == 0) {
      result_.resize(chunk(context.rank).count);
      to_owner_[index(context.rank)]->decode(0, within(context, 0, context.rank, world_), messages, result_);
      return;
    }
    for (int owner = 0; owner < world_; ++owner) {
      const Context single = within(context, 1, owner, 1);
      Compressor& codec = *from_owner_[index(owner)];
      Message message = messages[index(owner)];
      const std::size_t bytes = codec.round(0, single).max_bytes;
      if (message.payload.size() < bytes)
        throw Error("chunked: result of rank " + std::to_string(owner) + " has " +
                    std::to_string(message.payload.size()) + " bytes, expected " + std::to_string(bytes));
      message.payload = message.payload.first(bytes);
      codec.decode(0, single, std::span(&message, 1), part_of(mean, chunk(owner)));
    }
  }

  void commit(bool finite) override {
    if (finite && encoded_) owed_.swap(next_owed_);
    encoded_ = false;
  }

  void settle(int rank, std::span<float> residual) override {
    const std::span<float> mine = part_of(residual, chunk(rank));
    if (!owed_.empty() && owed_.size() != mine.size())
      throw Error("chunked: " + std::to_string(owed_.size()) + " values owed, expected the " +
                  std::to_string(mine.size()) + " of rank " + std::to_string(rank) + "'s chunk");
    // What the owner owes is a mean; of a residual only its share of one reaches the others.
    for (std::size_t k = 0; k < owed_.size(); ++k) mine[k] += static_cast<float>(world_) * owed_[k];
    owed_.clear();
  }

  void save_state(const StateWriter& state) const override { state.put("owed", owed_); }
  void load_state(const StateReader& state) override { state.get("owed", owed_); }
  void forget_own() override { owed_.clear(); }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  Chunk chunk(int owner) const { return chunk_of(n_, world_, owner); }

  // Chunks are tensors of their own to their codecs, and draw differently.
  static Context within(Context context, int round, int owner, int world) {
    context.seed = Hash()
                       .add(context.seed)
                       .add("chunk")
                       .add(static_cast<std::uint64_t>(round))
                       .add(static_cast<std::uint64_t>(owner))
                       .value();
    context.world = world;
    return context;
  }

  std::size_t n_;
  int world_;
  bool encoded_ = false;  // In this step; a layer may be left out of one.
  std::vector<std::unique_ptr<Compressor>> to_owner_, from_owner_;
  std::vector<float> result_;            // The mean of the own chunk.
  std::vector<float> owed_, next_owed_;  // With error feedback: what its second encoding has not sent yet.
};

}  // namespace

Chunk chunk_of(std::size_t n, int world, int owner) {
  const auto ranks = static_cast<std::size_t>(world);
  const std::size_t length = ((n + ranks - 1) / ranks + kAlign - 1) / kAlign * kAlign;
  const std::size_t offset = std::min(n, length * static_cast<std::size_t>(owner));
  return {offset, std::min(length, n - offset)};
}

std::unique_ptr<Compressor> make_chunked(const Shape& shape, int world, const MakePiece& to_owner,
                                         const MakePiece& from_owner) {
  return std::make_unique<Chunked>(shape, world, to_owner, from_owner);
}

std::size_t chunked_bytes(const Shape& shape, int world, const PieceBytes& to_owner,
                          const PieceBytes& from_owner) {
  std::size_t bytes = from_owner(flat(chunk_of(shape.count(), world, 0).count));
  for (int owner = 0; owner < world; ++owner)
    bytes += to_owner(flat(chunk_of(shape.count(), world, owner).count));
  return bytes;
}

}  // namespace accordion
