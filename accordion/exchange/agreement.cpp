#include "accordion/exchange/agreement.h"

#include <cstdint>
#include <sstream>
#include <vector>

#include "accordion/base/error.h"
#include "accordion/base/hash.h"

namespace accordion {
namespace {

// More than any claim has; memory is not taken on a peer's word alone.
constexpr std::uint64_t kLongestText = 64 << 20;

// Everyone's text, in rank order.
std::vector<std::string> gather_texts(Communicator& control, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(control.size());
  std::vector<std::uint64_t> lengths(ranks);
  const std::uint64_t length = mine.size();
  control.gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)));
  std::vector<std::string> texts(ranks);
  std::vector<std::span<std::byte>> places;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (lengths[r] > kLongestText)
      throw Error("rank " + std::to_string(r) + " announces a claim of " + std::to_string(lengths[r]) +
                  " bytes, expected at most " + std::to_string(kLongestText));
    texts[r].resize(lengths[r]);
    places.push_back(std::as_writable_bytes(std::span(texts[r])));
  }
  control.gather(std::as_bytes(std::span(mine)), places);
  return texts;
}

// The first line in which two texts differ, from both sides.
std::string first_difference(const std::string& theirs, const std::string& first) {
  std::istringstream a(theirs), b(first);
  std::string mine = "nothing", expected = "nothing";
  while (true) {
    const bool more = static_cast<bool>(std::getline(a, mine));
    const bool more_expected = static_cast<bool>(std::getline(b, expected));
    if (!more) mine = "nothing";
    if (!more_expected) expected = "nothing";
    if (mine != expected || (!more && !more_expected)) break;
  }
  return mine + " against " + expected;
}

}  // namespace

void require_agreement(Communicator& control, std::span<const Claim> claims) {
  std::vector<std::uint64_t> hashes;
  for (const Claim& claim : claims) hashes.push_back(Hash().add(claim.label).add(claim.text).value());
  const auto ranks = static_cast<std::size_t>(control.size());
  std::vector<std::uint64_t> all(ranks * hashes.size());
  control.gather(std::as_bytes(std::span(hashes)), std::as_writable_bytes(std::span(all)));

  std::string message;
  for (std::size_t c = 0; c < claims.size(); ++c) {
    bool agreed = true;
    for (std::size_t r = 1; r < ranks; ++r) agreed = agreed && all[r * claims.size() + c] == all[c];
    if (agreed) continue;
    const std::vector<std::string> texts = gather_texts(control, claims[c].text);
    for (std::size_t r = 1; r < ranks; ++r)
      if (texts[r] != texts[0])
        message += (message.empty() ? "" : "; ") + ("rank " + std::to_string(r)) +
                   " differs from rank 0 in its " + claims[c].label + ": " +
                   first_difference(texts[r], texts[0]);
  }
  if (!message.empty()) throw RanksDiffer(message);
}

}  // namespace accordion
