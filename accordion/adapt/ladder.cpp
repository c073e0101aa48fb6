#include "accordion/adapt/ladder.h"

#include <algorithm>

#include "accordion/base/setting.h"

namespace accordion {
namespace {

// Options that can be turned, of whichever codec has one: "keep, bits or approx-rank".
std::string all_dials() {
  std::vector<std::string> names;
  for_each_alternative<CodecOptions>([&](auto options) {
    if (const auto dial = traits_of(options).dial)
      if (std::find(names.begin(), names.end(), dial->option) == names.end())
        names.emplace_back(dial->option);
  });
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

[[noreturn]] void refuse(std::string_view owner, const std::string& what) {
  throw UsageError(std::string(owner) + ": " + what +
                   ", expected levels=A;B;C, or two settings of one codec that differ in " + all_dials() +
                   ", the mild one sending more");
}

// Halves from mild down, and ends with strong however far the last step is.
std::vector<CodecOptions> halve(const CodecOptions& codec, double mild, double strong) {
  std::vector<CodecOptions> levels;
  constexpr double kSame = 1.0001;  // 0.001 doubled eight times is not quite 0.256.
  for (double value = mild; value > strong * kSame; value /= 2) levels.push_back(with_dial(codec, value));
  levels.push_back(with_dial(codec, strong));
  return levels;
}

}  // namespace

std::vector<CodecOptions> make_ladder(std::string_view owner, const CodecOptions& mild,
                                      const CodecOptions& strong) {
  const std::string both = "mild=" + codec_text(mild) + ", strong=" + codec_text(strong);
  if (mild.index() != strong.index() || !traits_of(mild).dial || !(dial_value(mild) > dial_value(strong)))
    refuse(owner, both);
  return halve(mild, dial_value(mild), dial_value(strong));
}

std::vector<CodecOptions> make_ladder(std::string_view owner, const CodecOptions& codec) {
  const auto dial = traits_of(codec).dial;
  if (!dial) refuse(owner, "codec=" + codec_text(codec));
  return halve(codec, dial->mild, dial->strong);
}

}  // namespace accordion
