#include "fuzz/decode.h"

#include <algorithm>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/exchange/frame.h"

namespace accordion {
namespace {

const std::vector<Shape> kShapes = {{{7, 3}},       {{0, 4}},  {{1, 1}},  {{31, 1}},  {{1, 32}},
                                    {{5, 2, 3, 3}}, {{33, 1}}, {{2, 65}}, {{40, 30}}, {{9000, 1}}};

// Choices taken off the front of the input.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t byte = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return byte;
  }

  std::uint32_t number(int bytes) {
    std::uint32_t number = 0;
    for (int i = 0; i < bytes; ++i) number |= std::uint32_t{byte()} << (8 * i);
    return number;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

void flip_some(Input& input, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  for (int edits = input.byte() % 8; edits > 0; --edits) {
    std::byte& target = bytes[input.number(2) % bytes.size()];
    target ^= static_cast<std::byte>(input.byte());
  }
}

// What may be done to one message. Their sum is one byte of input.
enum Change : std::uint8_t {
  kAnyLength = 1,
  kFlip = 2,     // Some bytes of the real payload.
  kReplace = 4,  // All of them.
  kAnyCount = 8,
  kFitCount = 16,  // As many entries as a sparse payload of that length has.
  kAnyFlags = 32,
  kFrame = 64,       // Goes through a frame,
  kFlipFrame = 128,  // which is damaged, too.
};

struct Received {
  std::vector<std::byte> bytes;  // Exactly as long as what arrived, so that a sanitizer sees the end.
  Message message;
};

void receive(Input& input, const CodecOptions& codec, std::size_t elements, const Round& round,
             const Encoded& real, std::span<const std::byte> payload, Received& received) {
  const std::uint8_t change = input.byte();
  const std::size_t length = change & kAnyLength ? input.number(2) % (round.max_bytes + 64) : real.bytes;
  std::vector<std::byte> bytes(length);
  std::copy_n(payload.begin(), std::min(length, payload.size()), bytes.begin());
  if (change & kFlip) flip_some(input, bytes);
  if (change & kReplace)
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(input.byte());
  const std::uint32_t count = change & kAnyCount   ? input.number(4)
                              : change & kFitCount ? static_cast<std::uint32_t>(length / 8)
                                                   : real.count;
  const std::uint8_t flags = change & kAnyFlags ? input.byte() : real.flags;
  if (!(change & kFrame) || round.pattern != Pattern::kGather) {
    received.bytes = std::move(bytes);
    received.message = {received.bytes, count, flags};
    return;
  }
  const auto id = static_cast<std::uint8_t>(codec.index());
  received.bytes.resize(frame_bytes(length));
  std::copy(bytes.begin(), bytes.end(), received.bytes.begin() + kFrameHeader);
  write_frame(received.bytes, id, elements, {length, count, flags});
  if (change & kFlipFrame) {
    flip_some(input, received.bytes);
    received.bytes.resize(received.bytes.size() - input.byte() % received.bytes.size());
    received.bytes.shrink_to_fit();
  }
  std::span<const std::byte> unread = received.bytes;
  received.message = read_frame(unread, id, elements, round.max_bytes, "fuzz");
}

void run_round(Input& input, const CodecOptions& codec, Compressor& compressor, int i, Context context,
               const Feedback& feedback, std::span<float> mean) {
  const Round round = compressor.round(i, context);
  const bool scatters = round.pattern == Pattern::kScatter;
  const bool combined = round.pattern == Pattern::kSum || round.pattern == Pattern::kMax;
  std::vector<std::byte> out(round.max_bytes), payload;
  Encoded real;
  for (context.piece = 0; context.piece < (scatters ? context.world : 1); ++context.piece) {
    const Encoded encoded = compressor.encode(i, context, feedback, out);
    // This rank's message stands for that of every other: they are as long.
    if (scatters && context.piece != context.rank) continue;
    real = encoded;
    payload.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(encoded.bytes));
  }
  context.piece = 0;
  std::vector<Received> received(combined ? 1 : static_cast<std::size_t>(context.world));
  std::vector<Message> messages;
  for (Received& one : received) {
    receive(input, codec, mean.size(), round, real, payload, one);
    messages.push_back(one.message);
  }
  compressor.decode(i, context, messages, mean);
}

}  // namespace

bool decode_bytes(const CodecOptions& codec, std::span<const std::uint8_t> bytes) {
  Input input(bytes);
  const Shape& shape = kShapes[input.byte() % kShapes.size()];
  Context context{.seed = 1, .world = 1 + input.byte() % 4};
  context.rank = input.byte() % context.world;
  const auto compressor = make_compressor(codec, shape, context.world, {.paper = true});

  std::vector<float> gradient(shape.count()), mean(shape.count());
  const std::size_t kept = compressor->wants_feedback() ? shape.count() : 0;
  std::vector<float> residual(kept), next(kept);
  try {
    for (context.step = 0; context.step < 2; ++context.step) {
      RandomStream(RandomKey{context.step}).normal(gradient);
      for (int i = 0; i < compressor->rounds(); ++i)
        run_round(input, codec, *compressor, i, context, {gradient, residual, next}, mean);
      compressor->commit(true);
      residual.swap(next);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace accordion
