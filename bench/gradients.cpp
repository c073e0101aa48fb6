// Entries are drawn once into two pools (Student's t with four degrees of freedom: finite variance, and a
// tail that a normal one has not), and a gradient is a window of the one, which all ranks see alike, plus a
// window of the other. The pools' lengths have no divisor in common, so a long layer does not repeat itself.
#include "bench/gradients.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "accordion/base/hash.h"
#include "accordion/base/random.h"

namespace accordion::bench {
namespace {

constexpr std::size_t kCommon = 4194301, kOwn = 3145739;
static_assert(std::gcd(kCommon, kOwn) == 1);

std::vector<float> draw_pool(std::size_t size, std::uint64_t seed) {
  std::vector<float> pool(size);
  RandomStream draws(RandomKey{seed});
  draws.normal(pool);
  // -2 ln(u v) is a chi-squared number with four degrees of freedom.
  for (float& value : pool) {
    const double u = (draws.next() + 1.0) * 0x1p-32, v = (draws.next() + 1.0) * 0x1p-32;
    value = static_cast<float>(value / std::sqrt(-std::log(u * v) / 2));
  }
  return pool;
}

std::size_t start(const char* pool, int tensor, int rank, int step, std::size_t size) {
  const auto word = [](int value) { return static_cast<std::uint64_t>(value); };
  const RandomKey key{
      Hash().add(std::string_view(pool)).add(word(tensor)).add(word(rank)).add(word(step)).value()};
  return key.block(0)[0] % size;
}

}  // namespace

Gradients::Gradients() : common_(draw_pool(kCommon, 1)), own_(draw_pool(kOwn, 2)) {}

float Gradients::scale(int tensor) {
  float normal[1];
  RandomStream(
      RandomKey{Hash().add(std::string_view("scale")).add(static_cast<std::uint64_t>(tensor)).value()})
      .normal(normal);
  return 1e-3f * std::exp(0.5f * normal[0]);
}

void Gradients::fill(int tensor, int rank, int step, std::span<float> gradient) const {
  std::size_t at = start("common", tensor, 0, step, kCommon), own_at = start("own", tensor, rank, step, kOwn);
  const float common_part = 0.6f * scale(tensor), own_part = 0.8f * scale(tensor);
  for (std::size_t i = 0; i < gradient.size();) {
    const std::size_t length = std::min({gradient.size() - i, kCommon - at, kOwn - own_at});
    float* to = gradient.data() + i;
    const float *common = common_.data() + at, *own = own_.data() + own_at;
    for (std::size_t j = 0; j < length; ++j) to[j] = common_part * common[j] + own_part * own[j];
    i += length;
    at = (at + length) % kCommon;
    own_at = (own_at + length) % kOwn;
  }
}

}  // namespace accordion::bench
