#include <array>
#include <cstring>

#include "accordion/base/error.h"
#include "accordion/base/hash.h"
#include "accordion/comm/loopback.h"
#include "accordion/comm/meeting_store.h"
#include "accordion/compress/elias.h"
#include "accordion/exchange/agreement.h"
#include "accordion/exchange/frame.h"
#include "fuzz/targets.h"

namespace accordion::fuzz {
namespace {

constexpr std::uint8_t kCodec = 3;
constexpr std::size_t kElements = 7, kMostPayload = 40;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string frame(std::size_t payload) {
  std::string text(frame_bytes(payload), '\x11');
  write_frame(std::as_writable_bytes(std::span(text)), kCodec, kElements, {payload, 2, 1});
  return text;
}

void parse_frames(std::string_view input) {
  const std::string exactly(input);  // In memory of its own, so that a sanitizer sees its end.
  std::span<const std::byte> rest = bytes_of(exactly);
  std::size_t sum = 0;
  while (!rest.empty())
    for (const std::byte byte : read_frame(rest, kCodec, kElements, kMostPayload, "peer").payload)
      sum += std::to_integer<std::size_t>(byte);
  volatile const std::size_t used = sum;
  static_cast<void>(used);
}

std::string elias_text() {
  std::array<std::byte, 64> out;
  elias::Writer writer(out);
  constexpr std::array<std::int8_t, 12> kLevels = {0, 3, 0, 0, -1, 0, 0, 0, 0, 0, 127, -128 + 1};
  writer.levels(kLevels);
  writer.number(1'000'000);
  writer.bits(5, 3);
  return {reinterpret_cast<const char*>(out.data()), writer.finish()};
}

void parse_elias(std::string_view input) {
  const std::string exactly(input);
  elias::Reader reader(bytes_of(exactly), "qsgd", 1);
  std::array<int, 12> levels{};
  reader.levels(levels.size(), 127, [&](std::size_t i, int level) { levels.at(i) = level; });
  reader.number();
  reader.bits(3);
  reader.finish();
}

const Claim kClaim = {"configuration", "lr = 0.1\nepochs = 3\n"};

std::string agreement(std::uint64_t hash, const std::string& text) {
  const std::array<std::uint64_t, 2> numbers = {hash, text.size()};
  return std::string(reinterpret_cast<const char*>(numbers.data()), sizeof numbers) + text;
}

// Rank 1 speaks the protocol by hand: its hash of a claim, the length of its text, its text. That it differs is an answer; that
// it cannot be asked is a refusal.
void parse_agreement(std::string_view input) try {
  std::array<std::uint64_t, 2> theirs{};
  std::memcpy(theirs.data(), input.data(), std::min(input.size(), sizeof theirs));
  const std::string text(input.substr(std::min(input.size(), sizeof theirs)));
  run_loopback(2, [&](Communicator& group) {
    if (group.rank() == 0) return require_agreement(group, std::span(&kClaim, 1));
    std::array<std::uint64_t, 2> all;
    const auto tell = [&](std::uint64_t value) {
      group.gather(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(all)));
    };
    tell(theirs[0]);
    if (theirs[0] == all[0]) return;
    tell(theirs[1]);
    std::string first(all[0], '\0'), mine = text;
    mine.resize(std::min<std::uint64_t>(theirs[1], 1 << 16));
    const std::array places = {std::as_writable_bytes(std::span(first)),
                               std::as_writable_bytes(std::span(mine))};
    group.gather(bytes_of(mine), places);
  });
} catch (const Error& error) {
  if (std::string_view(error.what()).find("rank 1 differs from rank 0") == std::string_view::npos) throw;
}

std::string request(StoreOperation operation, std::string_view key, std::string_view value) {
  const std::string text = store_request(operation, key, value);
  return static_cast<char>(text.size()) + text;
}

// Requests one after the other, a byte with the length before each.
void parse_store(std::string_view input) {
  MeetingTable table;
  while (!input.empty()) {
    const std::size_t length = static_cast<unsigned char>(input[0]);
    const std::string exactly(input.substr(1, length));
    input.remove_prefix(std::min(input.size(), 1 + length));
    table.answer(exactly);
  }
}

}  // namespace

std::vector<Target> wire_targets() {
  return {
      {"frame", {frame(0), frame(9) + frame(40)}, parse_frames},
      {"elias", {elias_text()}, parse_elias},
      {"agreement",
       {agreement(Hash().add(kClaim.label).add(kClaim.text).value(), ""),
        agreement(1, "lr = 0.1\nepochs = 4\n")},
       parse_agreement},
      {"store",
       {request(StoreOperation::kSet, "a", "b") + request(StoreOperation::kGet, "a", "") +
        request(StoreOperation::kAdd, "n", std::string(8, '\1')) +
        request(StoreOperation::kAdd, "n", std::string(8, '\1')) + request(StoreOperation::kErase, "a", "")},
       parse_store},
  };
}

}  // namespace accordion::fuzz
