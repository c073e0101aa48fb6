// signSGD: every rank sends one bit an entry, and each entry of the result is the sign that most ranks have
// (Bernstein et al. 2018). A tie gives 0. The result has magnitude 1, whatever the gradients': it replaces a
// mean and is none.
//
// message := sign: bit[n]      -- 1 where a >= 0; little-endian in u32 words, the last word filled up with 0
// flags   := 1 if all of a is zero; the rank then has no vote
//
// With count=true, which all ranks add up:
//
// message := vote: i8[n]       -- 1 where a >= 0, else -1; 0 throughout if all of a is zero
#include "accordion/compress/sign_vote.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "accordion/kernels/signs.h"

namespace accordion {
namespace {

constexpr std::uint8_t kAbstains = 1;

class SignVote final : public Compressor {
 public:
  SignVote(const SignVoteOptions& options, const Shape& shape) : count_(options.count), n_(shape.count()) {
    if (count_) signs_.resize(kernels::sign_words(n_));
  }

  bool wants_feedback() const override { return false; }

  Round round(int i, const Context& context) const override {
    if (count_) return {Pattern::kSum, Element::kInt8, bytes()};
    return {Pattern::kGather, Element::kByte, bytes()};
  }

  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    auto* words = count_ ? signs_.data() : reinterpret_cast<std::uint32_t*>(out.data());
    const float largest =
        kernels::pack_signs(feedback.gradient, feedback.residual, {words, kernels::sign_words(n_)});
    if (count_) {
      auto* votes = reinterpret_cast<std::int8_t*>(out.data());
      for (std::size_t k = 0; k < n_; ++k)
        votes[k] = static_cast<std::int8_t>(largest == 0 ? 0 : (words[k / 32] >> (k % 32) & 1) * 2 - 1);
    }
    // A vote has no magnitude, so nothing of one is left to send.
    std::fill(feedback.next.begin(), feedback.next.end(), 0.0f);
    return {.bytes = bytes(),
            .flags = largest == 0 ? kAbstains : std::uint8_t{0},
            .finite = std::isfinite(largest)};
  }

  void decode(int i, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    if (count_) return decode_sum(messages, mean);
    voters_.clear();
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
      const Message& message = messages[rank];
      if (message.payload.size() != bytes())
        throw Error("sign-vote: payload" + from(rank) + " has " + std::to_string(message.payload.size()) +
                    " bytes, expected " + std::to_string(bytes()));
      if (message.flags > kAbstains)
        throw Error("sign-vote: flags" + from(rank) + " are " + std::to_string(message.flags) +
                    ", expected 0 or 1");
      if (message.flags != kAbstains)
        voters_.push_back({reinterpret_cast<const std::uint32_t*>(message.payload.data()), 1.0f});
    }
    kernels::count_votes(voters_, mean);
  }

 private:
  static std::string from(std::size_t rank) { return " of message from rank " + std::to_string(rank); }

  std::size_t bytes() const { return count_ ? n_ : 4 * kernels::sign_words(n_); }

  void decode_sum(std::span<const Message> messages, std::span<float> mean) const {
    if (messages.size() != 1 || messages[0].payload.size() != n_)
      throw Error("sign-vote: the sum of votes has " +
                  std::to_string(messages.empty() ? 0 : messages[0].payload.size()) + " bytes, expected " +
                  std::to_string(n_));
    const auto* votes = reinterpret_cast<const std::int8_t*>(messages[0].payload.data());
    for (std::size_t k = 0; k < n_; ++k) mean[k] = static_cast<float>((votes[k] > 0) - (votes[k] < 0));
  }

  bool count_;
  std::size_t n_;
  std::vector<std::uint32_t> signs_;
  std::vector<kernels::Signs> voters_;
};

}  // namespace

std::unique_ptr<Compressor> make(const SignVoteOptions& options, const Shape& shape) {
  if (options.chunked && options.count)
    throw UsageError("sign-vote: chunked=true with count=true, expected one of them");
  return std::make_unique<SignVote>(options, shape);
}

std::size_t payload_bytes(const SignVoteOptions& options, const Shape& shape, int world) {
  return options.count ? shape.count() : 4 * kernels::sign_words(shape.count());
}

}  // namespace accordion
