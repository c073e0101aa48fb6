#include "fuzz/decode.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/compress/local_group.h"
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
             const Message& real, Received& received) {
  const std::uint8_t change = input.byte();
  const std::size_t length =
      change & kAnyLength ? input.number(2) % (round.max_bytes + 64) : real.payload.size();
  std::vector<std::byte> bytes(length);
  std::copy_n(real.payload.begin(), std::min(length, real.payload.size()), bytes.begin());
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
  const std::uint8_t id = frame_id(codec);
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

// The honest ranks decode what was sent, the last one what the input made of it.
void run_round(Input& input, const CodecOptions& codec, int i, std::span<const LocalRank> ranks,
               const LocalRank& last) {
  const LocalRound round = encode_round(i, ranks);
  for (const LocalRank& rank : ranks)
    if (&rank.codec != &last.codec)
      rank.codec.decode(i, rank.context, round.received(rank.context.rank), rank.mean);
  Round what = round.what;
  Context mine = last.context;
  mine.piece = mine.rank;
  if (what.pattern == Pattern::kScatter) what = last.codec.round(i, mine);
  const std::vector<Message> sent = round.received(last.context.rank);
  std::vector<Received> received(sent.size());
  std::vector<Message> messages;
  for (std::size_t k = 0; k < sent.size(); ++k) {
    receive(input, codec, last.mean.size(), what, sent[k], received[k]);
    messages.push_back(received[k].message);
  }
  last.codec.decode(i, last.context, messages, last.mean);
}

// One rank's side of a layer, between steps.
struct Replica {
  std::unique_ptr<Compressor> codec;
  std::vector<float> gradient, residual, next, mean;
};

}  // namespace

bool decode_bytes(const CodecOptions& codec, std::span<const std::uint8_t> bytes) {
  Input input(bytes);
  const Shape& shape = kShapes[input.byte() % kShapes.size()];
  const int world = 1 + input.byte() % 4, victim = input.byte() % world;
  std::vector<Replica> replicas(static_cast<std::size_t>(world));
  for (Replica& replica : replicas) {
    replica.codec = make_compressor(codec, shape, world, {.published = true});
    replica.gradient.resize(shape.count());
    replica.mean.resize(shape.count());
    replica.residual.resize(replica.codec->wants_feedback() ? shape.count() : 0);
    replica.next.resize(replica.residual.size());
  }
  try {
    for (std::uint64_t step = 0; step < 2; ++step) {
      std::vector<LocalRank> ranks;
      for (int rank = 0; rank < world; ++rank) {
        Replica& replica = replicas[static_cast<std::size_t>(rank)];
        RandomStream(RandomKey{step + static_cast<std::uint64_t>(2 * rank)}).normal(replica.gradient);
        ranks.push_back({*replica.codec,
                         {.seed = 1, .step = step, .rank = rank, .world = world},
                         {replica.gradient, replica.residual, replica.next},
                         replica.mean});
      }
      for (int i = 0; i < replicas[0].codec->rounds(); ++i)
        run_round(input, codec, i, ranks, ranks[static_cast<std::size_t>(victim)]);
      for (Replica& replica : replicas) {
        replica.codec->commit(true);
        replica.residual.swap(replica.next);
      }
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace accordion
