#include "accordion/perf/verdict.h"

#include <algorithm>
#include <cstdio>

#include "accordion/compress/codecs.h"

namespace accordion::perf {
namespace {

std::string formatted(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string spoken_ms(double seconds) {
  return formatted(seconds < 0.1 ? "%.3g ms" : "%.0f ms", seconds * 1e3);
}

// "rank 4" of approx-rank=4, "1 %" of keep=0.01, others as they are.
std::string spoken_option(std::string_view option) {
  const std::size_t equals = option.find('=');
  const std::string value(equals == std::string_view::npos ? "" : option.substr(equals + 1));
  if (option.starts_with("approx-rank=")) return "rank " + value;
  if (option.starts_with("bits=")) return value + " bit";
  if (option.starts_with("keep=")) return formatted("%.3g %%", 100 * std::strtod(value.c_str(), nullptr));
  return std::string(option);
}

// A break-even beyond which the winner is another, on the slower side of here.
std::optional<double> next_below(const MethodAdvice& method, double gbps) {
  std::optional<double> found;
  for (const double turn : method.break_even)
    if (turn < gbps) found = turn;
  return found;
}

std::optional<double> next_above(const MethodAdvice& method, double gbps) {
  for (const double turn : method.break_even)
    if (turn > gbps) return turn;
  return std::nullopt;
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string why_plain(const Advice& advice) {
  const Prediction& plain = advice.plain().predicted;
  const double exposed = plain.communication / plain.step;
  const std::string at = "at " + spoken_gbps(advice.gbps) + " plain DDP ";
  if (exposed < 0.01) return at + "hides all communication.";
  const MethodAdvice* second = nullptr;
  for (const MethodAdvice& method : advice.methods)
    if (method.predicted.method != kPlain && method.fits &&
        (!second || method.predicted.step < second->predicted.step))
      second = &method;
  if (!second)
    return at + "waits for the network " + formatted("%.0f %%", 100 * exposed) +
           " of its step, and the profile has no method" +
           (advice.methods.size() > 1 ? " that fits into memory." : ".");
  return at + "takes " + spoken_ms(plain.step) + " a step, " + spoken(second->predicted.method) +
         " as the best method " + spoken_ms(second->predicted.step) +
         (second->predicted.step < plain.step ? ": that little is not worth it." : ".");
}

// Who wins first as the network becomes slower; or, if nobody does, as it becomes faster.
std::string when_not_plain(const Advice& advice) {
  const MethodAdvice *below = nullptr, *above = nullptr;
  bool all_fit = true;
  for (const MethodAdvice& method : advice.methods) {
    all_fit = all_fit && method.fits;
    if (method.wins || !method.fits) continue;
    const auto down = next_below(method, advice.gbps), up = next_above(method, advice.gbps);
    if (down && (!below || *down > *next_below(*below, advice.gbps))) below = &method;
    if (up && (!above || *up < *next_above(*above, advice.gbps))) above = &method;
  }
  if (below)
    return " " + capital(spoken(below->predicted.method)) + " starts to win below " +
           spoken_gbps(*next_below(*below, advice.gbps)) + ".";
  if (above)
    return " " + capital(spoken(above->predicted.method)) + " starts to win above " +
           spoken_gbps(*next_above(*above, advice.gbps)) + ".";
  return advice.methods.size() == 1 || !all_fit ? "" : " No method of the profile wins at any bandwidth.";
}

// What would have been the advice, were there more memory.
std::string what_does_not_fit(const Advice& advice) {
  const MethodAdvice* faster = &advice.best();
  for (const MethodAdvice& method : advice.methods)
    if (method.wins && method.predicted.step < faster->predicted.step) faster = &method;
  if (faster->fits) return "";
  return " " + capital(spoken(faster->predicted.method)) +
         " is faster, but its gathered messages fit into memory only up to " +
         std::to_string(*faster->fits_up_to) + " workers.";
}

}  // namespace

std::string spoken(const std::string& method) {
  const std::string name = method.substr(0, method.find(':'));
  const std::string codec = spoken_name(name);
  if (codec == name) return method;
  std::string text = codec;
  for (std::string_view rest = std::string_view(method).substr(name.size()); rest.size() > 1;) {
    rest.remove_prefix(1);  // ':' or ','
    const std::string_view option = rest.substr(0, rest.find(','));
    text += (text == codec ? " " : ", ") + spoken_option(option);
    rest.remove_prefix(option.size());
  }
  return text;
}

std::string spoken_gbps(double gbps) {
  return formatted(gbps < 1000 ? "%.3g Gbit/s" : "%.0f Gbit/s", gbps);
}

std::string verdict_of(const Advice& advice) {
  const MethodAdvice& best = advice.best();
  if (best.predicted.method == kPlain)
    return "Do not compress: " + why_plain(advice) + when_not_plain(advice) + what_does_not_fit(advice);
  const double plain = advice.plain().predicted.step, step = best.predicted.step;
  std::string text = "Compress with " + spoken(best.predicted.method) + ": at " + spoken_gbps(advice.gbps) +
                     " a step takes " + spoken_ms(step) + " instead of " + spoken_ms(plain) + ", " +
                     formatted("%.0f %%", 100 * (1 - step / plain)) + " less.";
  if (const auto turn = next_above(best, advice.gbps))
    text += " Above " + spoken_gbps(*turn) + " it no longer pays.";
  return text + what_does_not_fit(advice);
}

}  // namespace accordion::perf
