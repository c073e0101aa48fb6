#include "accordion/compress/sparse.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "accordion/base/error.h"
#include "accordion/kernels/kth_largest.h"

namespace accordion::sparse {
namespace {

template <class Value>
Value load(std::span<const std::byte> bytes, std::size_t i) {
  Value value;
  std::memcpy(&value, bytes.data() + i * sizeof(Value), sizeof(Value));
  return value;
}

[[noreturn]] void refuse(std::string_view name, const std::string& what) {
  throw Error(std::string(name) + ": " + what);
}

void check_size(std::string_view name, const Message& message, std::size_t rank, std::size_t n) {
  const bool dense = message.flags & kDense;
  const std::size_t expected = dense ? n * sizeof(float) : message.count * kEntryBytes;
  if (message.payload.size() != expected)
    refuse(name, "message from rank " + std::to_string(rank) + " has " +
                     std::to_string(message.payload.size()) + " bytes, expected " + std::to_string(expected));
}

}  // namespace

kernels::Room lay_out(std::span<std::byte> out, std::size_t count) {
  return {{reinterpret_cast<std::uint32_t*>(out.data()), count},
          {reinterpret_cast<float*>(out.data() + count * sizeof(std::uint32_t)), count}};
}

void write_zeros(std::span<std::byte> out, std::size_t count) {
  const kernels::Room entries = lay_out(out, count);
  std::iota(entries.indices.begin(), entries.indices.end(), 0u);
  std::fill(entries.values.begin(), entries.values.end(), 0.0f);
}

Cut largest(kernels::Sum values, std::size_t k) {
  if (k == 0) return {.sure = kernels::kBeyondAll, .maybe = kernels::kBeyondAll};
  const kernels::Kth kth = kernels::kth_largest(values, k);
  return {.sure = kth.value + 1, .maybe = kth.value, .take = k - kth.above};
}

namespace {

// Where some lie between `maybe` and `sure`: the order decides, one by one. Returns how many were left.
std::size_t take_some(Cut& cut, kernels::Room candidates, kernels::Room out) {
  // Written to both sides, counted on one: a branch per candidate would cost more.
  std::size_t taken = 0, left = 0;
  for (std::size_t i = 0; i < candidates.indices.size(); ++i) {
    const std::uint32_t index = candidates.indices[i];
    const float value = candidates.values[i];
    const bool takes = cut.takes(kernels::magnitude(value));
    if (taken < out.indices.size()) {
      out.indices[taken] = index;
      out.values[taken] = value;
    }
    candidates.indices[left] = index;
    candidates.values[left] = value;
    taken += takes;
    left += !takes;
  }
  return left;
}

kernels::Room part_of(kernels::Room room, std::size_t begin, std::size_t count) {
  return {room.indices.subspan(begin, count), room.values.subspan(begin, count)};
}

}  // namespace

void take(Cut cut, kernels::Room candidates, kernels::Room out, std::span<float> next) {
  constexpr std::size_t kBlock = 2048;
  std::size_t taken = 0;
  for (std::size_t begin = 0; begin < candidates.indices.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, candidates.indices.size() - begin);
    const kernels::Room block = part_of(candidates, begin, count);
    const kernels::Room rest = part_of(out, taken, out.indices.size() - taken);
    const bool clear = kernels::count_at_least({block.values}, cut.maybe) ==
                       kernels::count_at_least({block.values}, cut.sure);
    const std::size_t left = clear ? kernels::part(block, cut.sure, rest) : take_some(cut, block, rest);
    taken += count - left;
    if (next.empty()) continue;
    for (std::size_t i = 0; i < left; ++i) next[block.indices[i]] = block.values[i];
  }
}

void take(Cut cut, kernels::Sum a, kernels::Room out, std::span<float> next) {
  std::size_t taken = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float value = a[i];
    const bool takes = cut.takes(kernels::magnitude(value));
    if (takes) {
      out.indices[taken] = static_cast<std::uint32_t>(i);
      out.values[taken++] = value;
    }
    if (!next.empty()) next[i] = takes ? 0 : value;
  }
}

void take_dense(Cut cut, kernels::Room candidates, float divisor, std::span<float> out,
                std::span<float> next) {
  for (std::size_t i = 0; i < candidates.indices.size(); ++i) {
    if (!cut.takes(kernels::magnitude(candidates.values[i]))) continue;
    out[candidates.indices[i]] = candidates.values[i] / divisor;
    if (!next.empty()) next[candidates.indices[i]] = 0;
  }
}

void take_dense(Cut cut, kernels::Sum a, float divisor, std::span<float> out, std::span<float> next) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float value = a[i];
    const bool takes = cut.takes(kernels::magnitude(value));
    out[i] = takes ? value / divisor : 0;
    if (!next.empty()) next[i] = takes ? 0 : value;
  }
}

void Decoder::decode(std::string_view name, const Context& context, std::span<const Message> messages,
                     std::span<float> mean, int divisor) {
  const auto share = static_cast<float>(divisor);
  if (messages.size() != static_cast<std::size_t>(context.world))
    refuse(name, std::to_string(messages.size()) + " messages, expected " + std::to_string(context.world));
  for (std::size_t rank = 0; rank < messages.size(); ++rank)
    check_size(name, messages[rank], rank, mean.size());
  cursors_.assign(messages.size(), {});

  // Block by block, so that entries land where the zeros have just been written.
  constexpr std::size_t kBlock = 8192;
  for (std::size_t begin = 0; begin < mean.size(); begin += kBlock) {
    const std::size_t end = std::min(mean.size(), begin + kBlock);
    std::fill(mean.begin() + begin, mean.begin() + end, 0.0f);
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
      const auto& [payload, count, flags] = messages[rank];
      if (flags & kDense) {
        for (std::size_t i = begin; i < end; ++i) mean[i] += load<float>(payload, i) / share;
        continue;
      }
      const std::span<const std::byte> values = payload.subspan(count * sizeof(std::uint32_t));
      Cursor cursor = cursors_[rank];
      while (cursor.at < count) {
        const auto index = load<std::uint32_t>(payload, cursor.at);
        if (index >= end) break;
        if (index < cursor.lowest)
          refuse(name, "index " + std::to_string(cursor.at) + " of message from rank " +
                           std::to_string(rank) + " is " + std::to_string(index) + ", expected at least " +
                           std::to_string(cursor.lowest));
        mean[index] += load<float>(values, cursor.at) / share;
        cursor = {cursor.at + 1, std::uint64_t{index} + 1};
      }
      cursors_[rank] = cursor;
    }
  }
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    if ((messages[rank].flags & kDense) || cursors_[rank].at == messages[rank].count) continue;
    const std::size_t at = cursors_[rank].at;
    refuse(name, "index " + std::to_string(at) + " of message from rank " + std::to_string(rank) + " is " +
                     std::to_string(load<std::uint32_t>(messages[rank].payload, at)) + ", expected below " +
                     std::to_string(mean.size()));
  }
}

}  // namespace accordion::sparse
