// How a codec's place in the tests is written down. The list itself: codec_cases_testing.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace accordion::testing_codecs {

// A setting of its own, and what differs from the codec's others.
struct CodecCase {
  std::string setting;
  bool fixed = true;    // payload_bytes() is exact, not a bound,
  bool bounded = true;  // or not even that: an average.
};

// Draws from a range, both ends included, or one of several.
struct Dice {
  std::function<int(int low, int high)> between;

  bool coin() const { return between(0, 1) == 1; }
  template <class T>
  T one_of(const std::vector<T>& values) const {
    return values[static_cast<std::size_t>(between(0, static_cast<int>(values.size()) - 1))];
  }
  std::string text(const std::vector<std::string>& values) const { return one_of(values); }
  std::string number(int low, int high) const { return std::to_string(between(low, high)); }
  std::string keep() const {
    return "keep=" + text({"0.001", "0.02", "0.1", "0.25", "0.34", "0.5", "0.75", "0.99", "1"});
  }
  std::string flag(const std::string& name) const { return coin() ? "," + name + "=true" : ""; }
};

// What the exchange gives with a mild and a strong setting: its hash, with SSE4 and with AVX2 (exchange/golden_test.cpp, which prints
// them).
struct Golden {
  std::string mild, strong;
  std::uint64_t sse4, avx2;
};

enum class Promise {
  kConserves,  // What is not sent now is sent later,
  kUnbiased,   // or the mean is right on average,
  kNeither,    // or it is a direction only, or rounded.
};

struct CodecEntry {
  std::string name;
  Promise promise = Promise::kConserves;
  bool homogeneous = true;  // Twice the gradient, twice the mean: about,
  bool exactly = true;      // or to the bit, over level changes, too.
  double rounding = 1e-5;   // What a sum over ranks may lose that no residual sees; relative.
  std::vector<CodecCase> cases = {};
  std::vector<Golden> golden = {};  // Of each codec, in one of its entries.
  // Any setting that keeps the promise; empty: the cases are all there are.
  std::function<std::string(const Dice&)> draw = {};
};

// The list.
inline const std::vector<CodecEntry>& codec_entries();

inline std::string drawn(const CodecEntry& entry, const Dice& dice) {
  return entry.draw ? entry.draw(dice) : dice.one_of(entry.cases).setting;
}

// The entry of a drawn setting, by its codec.
inline const CodecEntry& entry_of(const std::string& setting) {
  const std::string name = setting.substr(0, setting.find(':'));
  for (const CodecEntry& entry : codec_entries())
    if (entry.name == name) return entry;
  static const CodecEntry dense{.name = "none", .cases = {{"none"}}};
  return dense;
}

}  // namespace accordion::testing_codecs
