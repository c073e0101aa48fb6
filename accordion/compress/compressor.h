// One layer's codec: gradient <-> bytes. It owns no communicator and no residual: exchange/ moves the bytes
// and keeps both.
//
// A step is one or more rounds. In each, every rank encodes a message, a collective combines or gathers the
// messages, and every rank decodes the result; after the last round `mean` holds the group's mean,
// bit-identical on all ranks.
//
// What a codec sees is the compensated gradient a = gradient + residual, and what it does not send it writes
// to `next`, all in the same pass: error feedback costs no pass of its own. Without error feedback `residual`
// and `next` are empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accordion/base/random.h"
#include "accordion/base/state.h"
#include "accordion/compress/tensor.h"

namespace accordion {

// Which step of which layer on which rank.
struct Context {
  std::uint64_t seed = 0, step = 0;
  int epoch = 0, tensor = 0, rank = 0, world = 1;
  int piece = 0;  // Which rank a scattered message is for.

  // Draws that no other rank makes, and draws that every rank makes alike.
  RandomKey private_key(std::string_view purpose) const;
  RandomKey shared_key(std::string_view purpose) const;
};

// Scattered: each rank encodes a message for every rank, and decodes what all ranks have for it. Those for
// one rank are equally long.
enum class Pattern { kSum, kMax, kGather, kScatter };
enum class Element { kByte, kFloat, kHalf, kBfloat16, kInt8, kInt16 };
std::size_t element_bytes(Element element);

struct Round {
  Pattern pattern;
  Element element;        // What is added or compared; other messages are bytes.
  std::size_t max_bytes;  // Room for the message; of a scattered one, exactly what goes to context.piece. A
                          // sum's or maximum's is exactly this long on every rank.
  bool fixed = true;      // A gathered message of exactly max_bytes on every rank, so that no sizes travel.
  std::size_t min_bytes = 0;  // What is not fixed is at least this long, where gradients are finite.
};

struct Feedback {
  std::span<const float> gradient;
  std::span<const float> residual;  // Empty: no error feedback.
  std::span<float> next;  // The residual after this step; written by the end of the last round's encode.
};

struct Encoded {
  std::size_t bytes = 0;
  std::uint32_t count = 0;      // Travels with a gathered message; entries of a sparse one.
  std::uint8_t flags = 0;       // Travels with a gathered message; the codec's own.
  bool finite = true;           // Whether all of a was. If not, what was encoded does not matter.
  std::uint32_t saturated = 0;  // Values beyond the message's range, sent as its largest.
};

// One rank's part of a gather, or the result of a sum or maximum (then there is one message). Off the wire:
// check it.
struct Message {
  std::span<const std::byte> payload;
  std::uint32_t count = 0;
  std::uint8_t flags = 0;
};

class Compressor {
 public:
  virtual ~Compressor() = default;

  // Whether what is not sent now must be sent later.
  virtual bool wants_feedback() const = 0;

  virtual int rounds() const { return 1; }
  virtual Round round(int i, const Context& context) const = 0;

  // Writes round i's message to `out`, which has room for max_bytes and is aligned for its elements (bytes:
  // to 8).
  virtual Encoded encode(int i, const Context& context, const Feedback& feedback,
                         std::span<std::byte> out) = 0;

  // Takes round i's result. After the last round, `mean` is the mean over context.world ranks. Throws Error
  // for a message that cannot be right; never reads or writes outside the spans.
  virtual void decode(int i, const Context& context, std::span<const Message> messages,
                      std::span<float> mean) = 0;

  // The step's end: keep this step's state if it was finite on all ranks, else go back.
  virtual void commit(bool finite) {}

  // The codec gives way to another: what it still owes beside the residual goes there.
  virtual void settle(int rank, std::span<float> residual) {}

  // What the next step depends on, between steps: checkpoints keep it, and a level change hands on what both
  // codecs have. The residual is not the codec's.
  virtual void save_state(const StateWriter& state) const {}
  virtual void load_state(const StateReader& state) {}

  // Forgets of that what other ranks do not have.
  virtual void forget_own() {}
};

}  // namespace accordion
