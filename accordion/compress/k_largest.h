// What TopK and MSTopK share: k entries of large magnitude, found in one pass.
//
// A small sample of a tells an interval that holds the k-th largest magnitude almost surely. The pass that
// adds the residual and writes the next one also collects the entries of that interval (and above), and the
// choice is made among these. Where the sample misled, a radix selection over all of a gives the exact cut.
//
// From a density of 1/world up, adding the masked dense tensors moves fewer bytes than gathering the entries.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "accordion/compress/sparse.h"
#include "accordion/kernels/kth_largest.h"

namespace accordion {

// How much of a tensor is kept, and how that travels.
struct Kept {
  double keep;
  bool published = false;  // Always gathered, added up instead of averaged, and without a residual.

  std::size_t count(std::size_t n) const;  // clamp(floor(keep * n), 1, n)
  bool dense(std::size_t n, int world) const;
  std::size_t bytes(std::size_t n, int world) const;
};

class KLargest : public Compressor {
 public:
  KLargest(std::string_view name, Kept kept, std::size_t n);

  bool wants_feedback() const final { return !kept_.published; }
  Round round(int i, const Context& context) const final;
  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) final;
  void decode(int i, const Context& context, std::span<const Message> messages, std::span<float> mean) final;

 protected:
  struct Candidates {
    std::span<const float> values;
    kernels::Magnitude low, high;  // They are all the entries in [low, high).
    kernels::Swept swept;          // Fewer than k lie above the interval; with it, at least k.
    std::size_t n, k;
  };

  // Takes exactly k, counting the swept.above entries from `high` up.
  virtual sparse::Cut choose(const Context& context, const Candidates& candidates) const = 0;
  // Takes exactly k where the k-th largest magnitude of all is known.
  virtual sparse::Cut choose(const Context& context, const kernels::Kth& kth, std::size_t k) const = 0;

 private:
  struct Interval {
    kernels::Magnitude low, high;
  };
  Interval guess(const kernels::Sum& a, bool dense);

  std::string_view name_;
  Kept kept_;
  std::size_t n_, k_;
  std::vector<float> sample_;
  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
  sparse::Decoder decoder_;
};

}  // namespace accordion
