#include "accordion/engine/guard_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>

#include "accordion/base/error.h"
#include "accordion/base/names.h"

namespace accordion {
namespace {

// A profile of this very model may count parameters that need no gradient, or have been rounded by hand.
constexpr double kOtherModel = 0.05;
// Of choices so close to each other the mildest is taken (perf/pays.h).
constexpr double kFaster = 0.99;

// As the profile spells it.
const std::string& profiled_setting(const perf::ModelProfile& model, const CodecOptions& level) {
  std::vector<std::string> settings;
  for (const perf::CodecProfile& each : model.codecs) {
    settings.push_back(each.codec);
    try {
      if (codec_text(parse_codec(each.codec)) == codec_text(level)) return each.codec;
    } catch (const UsageError&) {  // Profiles of other programs' codecs are fine.
    }
  }
  throw UsageError("model " + model.model + " has no times of " + codec_text(level) + ", but of " +
                   join(settings) + "; accordion calibrate --codecs measures others");
}

perf::Timeline step_with(const perf::Profile& profile, const perf::ModelProfile& model,
                         std::string_view codec, int ranks) {
  const perf::StepModel step = perf::step_model(profile, model, codec, ranks, profile.network.bandwidth_gbps);
  return perf::simulate(step, std::vector<int>(step.layers.size(), codec.empty() ? perf::kDense : 0));
}

std::string step_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", 1e3 * seconds);
  return text;
}

const perf::ModelProfile& model_in(const perf::Profile& profile, const GuardProfile& wanted,
                                   std::size_t parameters) {
  const perf::ModelProfile& model = perf::find_model(profile, wanted.model, wanted.batch);
  const auto here = static_cast<double>(parameters), there = static_cast<double>(model.parameters);
  if (std::abs(here - there) > kOtherModel * there)
    throw UsageError("model " + model.model + " has " + std::to_string(model.parameters) +
                     " parameters, expected a profile of this one, with " + std::to_string(parameters));
  return model;
}

}  // namespace

ProfileVerdict verdict_of(const perf::Profile& profile, const perf::ModelProfile& model,
                          std::span<const CodecOptions> levels, int ranks, perf::Goal goal) {
  std::vector<std::string> settings;
  for (const CodecOptions& level : levels) settings.push_back(profiled_setting(model, level));
  if (ranks == 1) return {false, 0, "one worker has nobody to send to"};
  const perf::Timeline dense = step_with(profile, model, "", ranks);
  double seconds = 0, bytes = 0;
  for (const std::string& setting : settings) {
    const perf::Timeline step = step_with(profile, model, setting, ranks);
    seconds = std::max(seconds, step.seconds);
    bytes = std::max(bytes, step.wire_bytes);
  }
  const bool compress = goal == perf::Goal::kFastest ? seconds < kFaster * dense.seconds
                                                     : seconds <= dense.seconds && bytes < dense.wire_bytes;
  return {compress, compress ? seconds : dense.seconds,
          "by the profile, with " + std::to_string(ranks) + " workers a step takes " + step_text(seconds) +
              " compressed and " + step_text(dense.seconds) + " plain"};
}

ProfileVerdict decide_by_profile(Communicator& ranks, const GuardProfile& wanted,
                                 std::span<const CodecOptions> levels, std::size_t parameters,
                                 perf::Goal goal) {
  ProfileVerdict verdict;
  std::exception_ptr failure;
  // The caller's mistake is one on every rank.
  constexpr double kDecided = 0, kFailed = 1, kMistaken = 2;
  double outcome = kDecided;
  if (ranks.rank() == 0) try {
      const perf::Profile profile = perf::read_profile(wanted.file);
      try {
        verdict = verdict_of(profile, model_in(profile, wanted, parameters), levels, ranks.size(), goal);
      } catch (const UsageError& error) {
        outcome = kMistaken;
        throw UsageError(wanted.file + ": " + error.what());
      }
    } catch (...) {
      if (outcome == kDecided) outcome = kFailed;
      failure = std::current_exception();
    }
  double message[] = {outcome, verdict.compress ? 1.0 : 0.0, verdict.seconds};
  ranks.broadcast(std::as_writable_bytes(std::span(message)), 0);
  if (failure) std::rethrow_exception(failure);
  const std::string others =
      "rank " + std::to_string(ranks.rank()) + ": rank 0 could not decide by the profile " + wanted.file;
  if (message[0] == kMistaken) throw UsageError(others);
  if (message[0] == kFailed) throw Error(others);
  verdict.compress = message[1] != 0;
  verdict.seconds = message[2];
  return verdict;
}

}  // namespace accordion
