// RandomK: k = clamp(floor(keep * n), 1, n) entries, drawn without replacement from a key that all ranks
// share and that changes with every step. Every rank knows the indices, so that only values travel and are
// added in place.
//
// With error feedback values are sent as they are, since scaling them could make the residual grow. Without
// it the mean is multiplied by n / k, which makes it unbiased.
//
// message := value: f32[k]   -- added; ascending indices
#include "accordion/compress/randomk.h"

#include <algorithm>
#include <limits>

#include "accordion/kernels/marked.h"

namespace accordion {
namespace {

constexpr std::size_t kWord = 64;

std::size_t kept(double keep, std::size_t n) {
  return n == 0 ? 0 : std::clamp<std::size_t>(static_cast<std::size_t>(keep * static_cast<double>(n)), 1, n);
}

class RandomK final : public Compressor {
 public:
  RandomK(const RandomKOptions& options, std::size_t n)
      : options_(options), n_(n), k_(kept(options.keep, n)), marks_((n + kWord - 1) / kWord) {}

  bool wants_feedback() const override { return options_.feedback; }

  Round round(int, const Context&) const override {
    return {Pattern::kSum, Element::kFloat, k_ * sizeof(float)};
  }

  Encoded encode(int, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    mark(context);
    const bool finite = kernels::take_marked(marks_, feedback.gradient, feedback.residual, feedback.next,
                                             reinterpret_cast<float*>(out.data()));
    // An unbiased message owes nothing: a residual that an earlier level left is spent.
    if (!options_.feedback) std::fill(feedback.next.begin(), feedback.next.end(), 0.0f);
    return {.bytes = k_ * sizeof(float), .finite = finite};
  }

  void decode(int, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    if (messages.size() != 1 || messages[0].payload.size() != k_ * sizeof(float))
      throw Error("randomk: the sum has " +
                  std::to_string(messages.empty() ? 0 : messages[0].payload.size()) + " bytes, expected " +
                  std::to_string(k_ * sizeof(float)));
    const double scale =
        options_.feedback || k_ == 0 ? 1.0 : static_cast<double>(n_) / static_cast<double>(k_);
    kernels::put_marked(marks_, reinterpret_cast<const float*>(messages[0].payload.data()),
                        scale / context.world, mean);
  }

 private:
  void mark(const Context& context) {
    if (n_ == 0) return;
    RandomStream draws(context.shared_key("randomk"));
    if (options_.block) {
      std::fill(marks_.begin(), marks_.end(), 0);
      const std::size_t start = draws.below(static_cast<std::uint32_t>(n_)), beyond = start + k_;
      mark_range(start, std::min(beyond, n_));
      if (beyond > n_) mark_range(0, beyond - n_);
      return;
    }
    // Marking more than half is leaving out less than half.
    const bool leave_out = k_ > n_ / 2;
    mark_some(context, draws, leave_out ? n_ - k_ : k_);
    if (!leave_out) return;
    for (std::uint64_t& word : marks_) word = ~word;
    marks_.back() &= last_word();
  }

  // Single draws cost a cache miss each, so first a coin falls for each entry, with the probability to 16
  // binary digits. Given its number, any set of marks is then as likely as any other, and stays so when
  // entries drawn at random make the number right.
  void mark_some(const Context& context, RandomStream& draws, std::size_t count) {
    const auto heads = static_cast<std::uint16_t>(65536 * count / n_);
    std::size_t marked = kernels::toss(context.shared_key("randomk coins"), heads, n_, marks_);
    while (marked != count) {
      const bool add = marked < count;
      // Taken together, because each draw's cache miss need not wait for the one before; a draw may hit in
      // vain.
      for (std::size_t i = add ? count - marked : marked - count; i > 0; --i) {
        const std::uint32_t at = draws.below(static_cast<std::uint32_t>(n_));
        std::uint64_t& word = marks_[at / kWord];
        const std::uint64_t bit = std::uint64_t{(word >> at % kWord & 1) != add} << at % kWord;
        word ^= bit;
        marked += bit == 0 ? 0 : add ? 1 : -1;
      }
    }
  }

  // The bits of the last word that stand for entries.
  std::uint64_t last_word() const { return ~std::uint64_t{0} >> (kWord - 1 - (n_ - 1) % kWord); }

  void mark_range(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end;) {
      const std::size_t in_word = std::min(kWord - i % kWord, end - i);
      marks_[i / kWord] |= (~std::uint64_t{0} >> (kWord - in_word)) << i % kWord;
      i += in_word;
    }
  }

  RandomKOptions options_;
  std::size_t n_, k_;
  std::vector<std::uint64_t> marks_;  // One bit per entry: sent this step.
};

}  // namespace

std::unique_ptr<Compressor> make(const RandomKOptions& options, const Shape& shape) {
  check(RandomKOptions::kName, options);
  if (shape.count() > std::numeric_limits<std::uint32_t>::max())
    throw UsageError("randomk: layer of " + std::to_string(shape.count()) + " entries, expected below 2^32");
  return std::make_unique<RandomK>(options, shape.count());
}

std::size_t payload_bytes(const RandomKOptions& options, const Shape& shape, int) {
  return kept(options.keep, shape.count()) * sizeof(float);
}

}  // namespace accordion
