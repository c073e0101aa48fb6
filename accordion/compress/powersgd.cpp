// PowerSGD: a rank-r approximation P Q^T of the mean gradient, by one step of subspace iteration per training
// step. Both factors are linear in the gradient, so sums of them over the ranks are all that travels. Q is
// kept: the next step starts where this one ended. (Vogels, Karimireddy and Jaggi, "PowerSGD: Practical
// Low-Rank Gradient Compression for Distributed Optimization", 2019; here with a guarded Gram-Schmidt and
// unit columns of Q.)
//
// round 0 := P: f32[r][rows]      -- added; P = a Q, one column after the other
// round 1 := Q: f32[r][columns]   -- added; Q = a^T P, with the sum of round 0 made orthonormal as P
#include "accordion/compress/powersgd.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "accordion/kernels/lowrank.h"
#include "accordion/kernels/orthonormal.h"

namespace accordion {
namespace {

kernels::LowRank sizes(const PowerSgdOptions& options, const Shape& shape) {
  const std::size_t rows = shape.rows(), columns = shape.columns();
  return {rows, columns, std::min({static_cast<std::size_t>(options.approx_rank), rows, columns})};
}

std::span<float> floats(std::span<std::byte> out, std::size_t count) {
  return {reinterpret_cast<float*>(out.data()), count};
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

class PowerSgd final : public Compressor {
 public:
  PowerSgd(const PowerSgdOptions& options, const Shape& shape)
      : warm_start_(options.warm_start),
        size_(sizes(options, shape)),
        p_(size_.rows * size_.rank),
        basis_(size_.columns * size_.rank),
        pending_(basis_.size()) {}

  bool wants_feedback() const override { return true; }
  int rounds() const override { return 2; }

  Round round(int i, const Context&) const override {
    return {Pattern::kSum, Element::kFloat, (i == 0 ? p_ : basis_).size() * sizeof(float)};
  }

  Encoded encode(int i, const Context& context, const Feedback& feedback, std::span<std::byte> out) override {
    if (i == 0) {
      choose_basis(context);
      const std::span<float> p = floats(out, p_.size());
      kernels::project(size_, feedback.gradient, feedback.residual, feedback.next, basis_, p);
      // A value of a that is not finite shows in its row of P.
      return {.bytes = p.size_bytes(), .finite = all_finite(p)};
    }
    const std::span<float> q = floats(out, basis_.size());
    if (feedback.residual.empty()) {
      kernels::coefficients(size_, feedback.gradient, p_, q);
    } else {
      kernels::take_out(size_, p_, q, feedback.next);
    }
    return {.bytes = q.size_bytes(), .finite = p_finite_ && all_finite(q)};
  }

  void decode(int i, const Context& context, std::span<const Message> messages,
              std::span<float> mean) override {
    std::vector<float>& sum = i == 0 ? p_ : pending_;
    const std::size_t bytes = sum.size() * sizeof(float);
    if (messages.size() != 1 || messages[0].payload.size() != bytes)
      throw Error("powersgd: round " + std::to_string(i) + "'s sum has " +
                  std::to_string(messages.empty() ? 0 : messages[0].payload.size()) + " bytes, expected " +
                  std::to_string(bytes));
    if (bytes > 0) std::memcpy(sum.data(), messages[0].payload.data(), bytes);
    if (i == 0) {
      p_finite_ = kernels::orthonormalise(p_, size_.rows);
      return;
    }
    decoded_ = true;
    for (float& value : pending_) value /= static_cast<float>(context.world);
    kernels::expand(size_, p_, pending_, mean);
  }

  void commit(bool finite) override {
    if (finite && warm_start_ && decoded_) q_ = pending_;
    decoded_ = false;
  }

  void save_state(const StateWriter& state) const override { state.put("q", q_); }
  // A level of another rank leaves a longer or shorter q: the next step takes the columns it wants.
  void load_state(const StateReader& state) override {
    state.get("q", q_);
    if (!q_.empty() && (size_.columns == 0 || q_.size() % size_.columns != 0))
      throw Error("powersgd: state q has " + std::to_string(q_.size()) +
                  " values, expected a multiple of the layer's " + std::to_string(size_.columns) +
                  " columns");
  }

 private:
  // The last step's Q in columns of unit length (only their span matters, and lengths would underflow over
  // the steps). A column that is missing or has died, as after a zero gradient, is drawn alike on all ranks:
  // zero would stay zero.
  void choose_basis(const Context& context) {
    const std::size_t kept = warm_start_ ? std::min(q_.size(), basis_.size()) : 0;
    std::copy_n(q_.begin(), kept, basis_.begin());
    std::fill(basis_.begin() + kept, basis_.end(), 0.0f);
    RandomStream draws(context.shared_key("powersgd q"));
    for (std::size_t j = 0; j < basis_.size(); j += size_.columns) {
      const std::span<float> column = std::span(basis_).subspan(j, size_.columns);
      double length = kernels::norm(column);
      while (!(length > 1e-30) || !std::isfinite(length)) {
        draws.normal(column);
        length = kernels::norm(column);
      }
      kernels::normalise(column, length);
    }
  }

  bool warm_start_;
  kernels::LowRank size_;
  std::vector<float> p_;        // Round 0's sum, made orthonormal.
  std::vector<float> basis_;    // What this step multiplies by.
  std::vector<float> pending_;  // This step's mean Q,
  std::vector<float> q_;        // and the last one's that counted.
  bool p_finite_ = true;
  bool decoded_ = false;  // In this step; a layer may be left out of one.
};

}  // namespace

std::unique_ptr<Compressor> make(const PowerSgdOptions& options, const Shape& shape) {
  check(PowerSgdOptions::kName, options);
  return std::make_unique<PowerSgd>(options, shape);
}

std::size_t payload_bytes(const PowerSgdOptions& options, const Shape& shape, int) {
  const kernels::LowRank size = sizes(options, shape);
  return sizeof(float) * size.rank * (size.rows + size.columns);
}

}  // namespace accordion
