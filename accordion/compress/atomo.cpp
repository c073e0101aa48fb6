// ATOMO: the singular value decomposition M = sum of s_i u_i v_i^T, of which each triplet is kept with its
// own probability p_i and sent as s_i / p_i. The probabilities are those of least variance for the expected
// number of triplets. (Wang and others, "ATOMO: Communication-efficient Learning via Atomic Sparsification",
// 2018.)
//
// message := triplet[count]
//          | value: f32[n]                                           -- with the flag kDense
// triplet := scale: f32, u: f32[rows], v: f32[columns]
//
// Dense is a matrix whose decomposition did not converge, or a sample with so many triplets that their sum is
// shorter. A sample is never drawn again for its size: that would bias the mean.
#include "accordion/compress/atomo.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "accordion/compress/lapack.h"
#include "accordion/kernels/dense.h"
#include "accordion/kernels/lowrank.h"

namespace accordion {
namespace {

constexpr std::uint8_t kDense = 1;
// Triplets multiplied out together, in one pass over the matrix.
constexpr std::size_t kBatch = 8;

class Atomo final : public Compressor {
 public:
  Atomo(const AtomoOptions& options, const Shape& shape)
      : budget_(options.budget),
        rows_(shape.rows()),
        columns_(shape.columns()),
        least_(std::min(rows_, columns_)),
        a_(rows_ * columns_),
        sigma_(least_),
        v_(columns_ * least_),
        ut_(least_ * rows_),
        keep_(least_),
        p_(kBatch * rows_),
        q_(kBatch * columns_) {}

  bool wants_feedback() const override { return false; }

  Round round(int, const Context&) const override {
    return {Pattern::kGather, Element::kByte, a_.size() * sizeof(float), false};
  }

  Encoded encode(int, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    const std::span<const float> gradient = feedback.gradient, residual = feedback.residual;
    for (std::size_t i = 0; i < a_.size(); ++i)
      a_[i] = residual.empty() ? gradient[i] : gradient[i] + residual[i];
    // An unbiased message owes nothing: a residual that an earlier level left is spent.
    std::fill(feedback.next.begin(), feedback.next.end(), 0.0f);
    const double squares = kernels::sum_of_squares(a_);
    if (!std::isfinite(squares)) return {.finite = false};
    if (squares == 0) return {};

    if (!decompose()) {
      // LAPACK has overwritten a.
      float* values = reinterpret_cast<float*>(out.data());
      for (std::size_t i = 0; i < a_.size(); ++i)
        values[i] = residual.empty() ? gradient[i] : gradient[i] + residual[i];
      return {.bytes = a_.size() * sizeof(float), .flags = kDense};
    }
    choose_probabilities();
    RandomStream draws(context.private_key("atomo"));
    std::size_t count = 0;
    for (double& keep : keep_) {
      if (draws.next() * 0x1p-32 >= keep) keep = 0;
      count += keep > 0;
    }
    const std::size_t bytes = count * triplet_bytes();
    if (bytes < a_.size() * sizeof(float)) {
      write_triplets(out);
      return {.bytes = bytes, .count = static_cast<std::uint32_t>(count)};
    }
    const std::span<float> sum(reinterpret_cast<float*>(out.data()), a_.size());
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (std::size_t i = 0; i < least_; ++i)
      if (keep_[i] > 0) {
        for (std::size_t row = 0; row < rows_; ++row) u(batched_)[row] = scale(i) * ut_[row * least_ + i];
        std::copy_n(&v_[i * columns_], columns_, v(batched_));
        if (++batched_ == kBatch) add_batch(sum);
      }
    add_batch(sum);
    return {.bytes = sum.size_bytes(), .flags = kDense};
  }

  void decode(int, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    std::fill(mean.begin(), mean.end(), 0.0f);
    batched_ = 0;
    const float world = static_cast<float>(context.world);
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
      const auto& [payload, count, flags] = messages[rank];
      check_size(rank, messages[rank]);
      if (flags & kDense) {
        add_batch(mean);
        for (std::size_t i = 0; i < mean.size(); ++i) {
          float value;
          std::memcpy(&value, payload.data() + i * sizeof(float), sizeof(float));
          mean[i] += value / world;
        }
        continue;
      }
      for (std::size_t i = 0; i < count; ++i) {
        const std::byte* at = payload.data() + i * triplet_bytes();
        float factor;
        std::memcpy(&factor, at, sizeof(float));
        if (!std::isfinite(factor) || factor < 0)
          throw Error("atomo: scale " + std::to_string(i) + " of message from rank " + std::to_string(rank) +
                      " is " + number_text(factor) + ", expected a finite number from 0 up");
        std::memcpy(u(batched_), at + sizeof(float), rows_ * sizeof(float));
        std::memcpy(v(batched_), at + (1 + rows_) * sizeof(float), columns_ * sizeof(float));
        kernels::scale({u(batched_), rows_}, factor / world);
        if (++batched_ == kBatch) add_batch(mean);
      }
    }
    add_batch(mean);
  }

 private:
  std::size_t triplet_bytes() const { return (1 + rows_ + columns_) * sizeof(float); }
  float* u(std::size_t i) { return p_.data() + i * rows_; }
  float* v(std::size_t i) { return q_.data() + i * columns_; }
  float scale(std::size_t i) const { return static_cast<float>(sigma_[i] / keep_[i]); }

  void check_size(std::size_t rank, const Message& message) const {
    const bool dense = message.flags & kDense;
    const std::size_t count = message.count,
                      bytes = dense ? a_.size() * sizeof(float) : count * triplet_bytes();
    if (message.flags <= kDense && (dense ? count == 0 : count <= least_) && message.payload.size() == bytes)
      return;
    throw Error("atomo: message from rank " + std::to_string(rank) + " has " + std::to_string(count) +
                " triplets, flags " + std::to_string(message.flags) + " and " +
                std::to_string(message.payload.size()) + " bytes, expected at most " +
                std::to_string(least_) + " triplets of " + std::to_string(triplet_bytes()) + " bytes, or " +
                std::to_string(a_.size() * sizeof(float)) + " bytes with flag 1");
  }

  // a, row after row, is to LAPACK the transpose of M: its left vectors are our v. False if there was no
  // convergence.
  bool decompose() {
    const int m = static_cast<int>(columns_), n = static_cast<int>(rows_), least = static_cast<int>(least_);
    int info = 0;
    const auto call = [&](float* work, int length) {
      sgesdd_("S", &m, &n, a_.data(), &m, sigma_.data(), v_.data(), &m, ut_.data(), &least, work, &length,
              iwork_.data(), &info, 1);
    };
    if (work_.empty()) {
      float best = 0;
      iwork_.resize(8 * least_);
      call(&best, -1);
      // Room is told in single precision, which may round it down.
      work_.resize(static_cast<std::size_t>(best * 1.0000005) + 1);
    }
    call(work_.data(), static_cast<int>(work_.size()));
    return info == 0 && std::all_of(sigma_.begin(), sigma_.end(), [](float s) { return std::isfinite(s); });
  }

  // The largest are certain as long as the budget allows; the others share what is left in proportion to
  // their size.
  void choose_probabilities() {
    double rest = 0, budget = budget_;
    for (float sigma : sigma_) rest += sigma;
    std::size_t i = 0;
    for (; i < least_ && budget > 0 && budget * sigma_[i] > rest; ++i) {
      keep_[i] = 1;
      budget -= 1;
      rest -= sigma_[i];
    }
    for (; i < least_; ++i) keep_[i] = rest > 0 ? std::min(1.0, budget * sigma_[i] / rest) : 0;
  }

  void write_triplets(std::span<std::byte> out) const {
    float* to = reinterpret_cast<float*>(out.data());
    for (std::size_t i = 0; i < least_; ++i) {
      if (keep_[i] == 0) continue;
      *to++ = scale(i);
      for (std::size_t row = 0; row < rows_; ++row) *to++ = ut_[row * least_ + i];
      to = std::copy_n(&v_[i * columns_], columns_, to);
    }
  }

  void add_batch(std::span<float> sum) {
    kernels::expand_add({rows_, columns_, batched_}, p_, q_, sum);
    batched_ = 0;
  }

  double budget_;
  std::size_t rows_, columns_, least_;
  std::vector<float> a_, sigma_, v_, ut_, work_;  // ut: the vectors u as rows, stored by columns.
  std::vector<int> iwork_;
  std::vector<double> keep_;  // Probabilities; after the draw zero for those not kept.
  std::vector<float> p_, q_;  // Triplets not yet multiplied out: u with its scale, and v.
  std::size_t batched_ = 0;
};

}  // namespace

std::unique_ptr<Compressor> make(const AtomoOptions& options, const Shape& shape) {
  check(AtomoOptions::kName, options);
  return std::make_unique<Atomo>(options, shape);
}

std::size_t payload_bytes(const AtomoOptions& options, const Shape& shape, int) {
  const std::size_t rows = shape.rows(), columns = shape.columns();
  const double triplets = std::min<double>(options.budget, static_cast<double>(std::min(rows, columns)));
  return static_cast<std::size_t>(
      std::ceil(triplets * static_cast<double>(sizeof(float) * (rows + columns + 1))));
}

}  // namespace accordion
