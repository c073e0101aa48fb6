#include "accordion/exchange/values.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <type_traits>

#include "accordion/kernels/dense.h"

namespace accordion {
namespace {

template <class T>
std::span<std::uint16_t> bits_of(std::span<T> values) {
  return {reinterpret_cast<std::uint16_t*>(values.data()), values.size()};
}

// Of 16-bit values a block at a time, which stays in the cache: calls body(floats) and writes them back.
constexpr std::size_t kBlock = 2048;

void in_blocks(const Values& values, bool write, const auto& body) {
  float floats[kBlock];
  std::visit(
      [&](auto all) {
        if constexpr (sizeof all[0] == sizeof(std::uint16_t))
          for (std::size_t begin = 0; begin < all.size(); begin += kBlock) {
            const auto some = all.subspan(begin, std::min(kBlock, all.size() - begin));
            const std::span wide(floats, some.size());
            widen(some, wide);
            body(wide);
            if (write) narrow(wide, 1, some);
          }
      },
      values);
}

}  // namespace

std::size_t count_of(const Values& values) {
  return std::visit([](auto span) { return span.size(); }, values);
}

bool has_sixteen_bits(const Values& values) {
  return std::visit([](auto span) { return sizeof span[0] == sizeof(std::uint16_t); }, values);
}

double sum_of_squares(const Values& values) {
  if (const auto* floats = std::get_if<std::span<float>>(&values)) return kernels::sum_of_squares(*floats);
  if (const auto* doubles = std::get_if<std::span<double>>(&values))
    return std::inner_product(doubles->begin(), doubles->end(), doubles->begin(), 0.0);
  double squares = 0;
  in_blocks(values, false, [&](std::span<float> floats) { squares += kernels::sum_of_squares(floats); });
  return squares;
}

void scale(const Values& values, double factor) {
  if (const auto* floats = std::get_if<std::span<float>>(&values))
    return kernels::scale(*floats, static_cast<float>(factor));
  if (const auto* doubles = std::get_if<std::span<double>>(&values)) {
    for (double& value : *doubles) value *= factor;
    return;
  }
  in_blocks(values, true,
            [&](std::span<float> floats) { kernels::scale(floats, static_cast<float>(factor)); });
}

void fill(const Values& values, double value) {
  std::visit(
      [&](auto span) {
        using T = typename decltype(span)::value_type;
        if constexpr (std::is_floating_point_v<T>) std::fill(span.begin(), span.end(), static_cast<T>(value));
      },
      values);
  in_blocks(values, true, [&](std::span<float> floats) {
    std::fill(floats.begin(), floats.end(), static_cast<float>(value));
  });
}

void widen(const Values& values, std::span<float> floats) {
  if (const auto* halves = std::get_if<std::span<Half>>(&values))
    kernels::from_halves(bits_of(*halves), floats);
  else
    kernels::from_bfloat16s(bits_of(std::get<std::span<Bfloat16>>(values)), floats);
}

kernels::Narrowed narrow(std::span<const float> floats, float divisor, const Values& values) {
  if (const auto* halves = std::get_if<std::span<Half>>(&values))
    return kernels::to_halves(floats, {}, divisor, bits_of(*halves), {});
  return kernels::to_bfloat16s(floats, {}, divisor, bits_of(std::get<std::span<Bfloat16>>(values)), {});
}

}  // namespace accordion
