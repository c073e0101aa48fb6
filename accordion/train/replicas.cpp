#include "accordion/train/replicas.h"

#include <algorithm>
#include <map>

#include "accordion/base/error.h"
#include "accordion/base/hash.h"

namespace accordion {
namespace {

std::uint64_t hash_of(const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.detach().contiguous();
  return Hash()
      .add(std::as_bytes(std::span(static_cast<const char*>(dense.data_ptr()), dense.nbytes())))
      .value();
}

// Who is to blame for one tensor's hashes: "rank 2 differs from the others".
std::string blame(const std::vector<std::uint64_t>& hashes) {
  std::map<std::uint64_t, std::size_t> votes;
  for (const std::uint64_t hash : hashes) ++votes[hash];
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (2 * most->second <= hashes.size())
    return hashes.size() == 2 ? "differs between rank 0 and rank 1"
                              : "differs between ranks, and no majority agrees";
  std::string odd;
  for (std::size_t r = 0; r < hashes.size(); ++r)
    if (hashes[r] != most->first) odd += (odd.empty() ? "" : ", ") + std::to_string(r);
  return "of rank " + odd + " differs from the other ranks'";
}

}  // namespace

void require_same_replicas(Communicator& control, const std::vector<std::string>& names,
                           const std::vector<torch::Tensor>& tensors, const std::string& when) {
  std::vector<std::uint64_t> mine;
  for (const torch::Tensor& tensor : tensors) mine.push_back(hash_of(tensor));
  const auto ranks = static_cast<std::size_t>(control.size());
  std::vector<std::uint64_t> all(mine.size() * ranks);
  control.gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  for (std::size_t t = 0; t < mine.size(); ++t) {
    std::vector<std::uint64_t> hashes;
    for (std::size_t r = 0; r < ranks; ++r) hashes.push_back(all[r * mine.size() + t]);
    if (std::adjacent_find(hashes.begin(), hashes.end(), std::not_equal_to<>()) == hashes.end()) continue;
    throw Error("replicas have drifted apart: " + names[t] + " " + blame(hashes) + " " + when +
                "; --check-every finds the step at which that happens");
  }
}

}  // namespace accordion
