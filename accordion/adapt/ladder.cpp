#include "accordion/adapt/ladder.h"

namespace accordion {
namespace {

[[noreturn]] void refuse(std::string_view owner, const std::string& what) {
  throw UsageError(
      std::string(owner) + ": " + what +
      ", expected levels=A;B;C, or two settings of one codec that differ in keep, approx-rank or "
      "bits, the mild one sending more");
}

// What a codec has that halves what it sends, and the range of it that is in use.
struct Dial {
  double mild, strong;
};
template <class Options>
constexpr bool kHasKeep = requires(Options options) {
  options.keep;
};
Dial usual(const QsgdOptions&) {
  return {8, 2};
}
Dial usual(const PowerSgdOptions&) {
  return {16, 1};
}
template <class Options>
Dial usual(const Options&) requires kHasKeep<Options> {
  return {0.256, 0.001};
}

double read(const QsgdOptions& options) {
  return std::stod(options.bits);
}
double read(const PowerSgdOptions& options) {
  return options.approx_rank;
}
template <class Options>
double read(const Options& options) requires kHasKeep<Options> {
  return options.keep;
}

void turn(QsgdOptions& options, double value) {
  options.bits = number_text(value);
}
void turn(PowerSgdOptions& options, double value) {
  options.approx_rank = static_cast<int>(value);
}
template <class Options>
void turn(Options& options, double value) requires kHasKeep<Options> {
  options.keep = value;
}

// Halves from mild down, and ends with strong however far the last step is.
std::vector<CodecOptions> halve(auto options, Dial dial) {
  std::vector<CodecOptions> levels;
  constexpr double kSame = 1.0001;  // 0.001 doubled eight times is not quite 0.256.
  for (double value = dial.mild; value > dial.strong * kSame; value /= 2) {
    turn(options, value);
    levels.push_back(options);
  }
  turn(options, dial.strong);
  levels.push_back(options);
  return levels;
}

}  // namespace

std::vector<CodecOptions> make_ladder(std::string_view owner, const CodecOptions& mild,
                                      const CodecOptions& strong) {
  const std::string both = "mild=" + codec_text(mild) + ", strong=" + codec_text(strong);
  if (mild.index() != strong.index()) refuse(owner, both);
  return std::visit(
      [&](const auto& options) -> std::vector<CodecOptions> {
        if constexpr (requires { usual(options); }) {
          const Dial dial{read(options), read(std::get<std::decay_t<decltype(options)>>(strong))};
          if (!(dial.mild > dial.strong)) refuse(owner, both);
          return halve(options, dial);
        }
        refuse(owner, both);
      },
      mild);
}

std::vector<CodecOptions> make_ladder(std::string_view owner, const CodecOptions& codec) {
  return std::visit(
      [&](const auto& options) -> std::vector<CodecOptions> {
        if constexpr (requires { usual(options); }) return halve(options, usual(options));
        refuse(owner, "codec=" + codec_text(codec));
      },
      codec);
}

}  // namespace accordion
