// What a profile says about compressing: how long a step takes with each method, when which of them wins, and a sentence that
// says so. Bandwidths are in Gbit/s, times in seconds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accordion/perf/profile.h"
#include "accordion/perf/turning.h"

namespace accordion::perf {

// Plain DDP, as a method.
inline constexpr std::string_view kPlain = "none";
inline constexpr int kMostWorkers = 1024;
inline constexpr Range kBandwidthsAsked{0.1, 1000};
// A step this much longer than one with no communication at all still counts as linear scaling.
inline constexpr double kNearLinear = 1.1;
// A method wins where its step is shorter than this part of plain DDP's: within a hundredth it is not worth the trouble.
inline constexpr double kWorthIt = 0.99;

// The profile outlives it.
struct Case {
  const Profile& profile;
  const ModelProfile& model;
  bool published =
      false;  // The published formulas (published.h): compressed methods overlap nothing, and a step has no `rest`.
};

struct Prediction {
  std::string method = {};
  double step = 0;
  // Parts that add up to it. What is hidden behind backward is no part of it.
  double backward = 0, encoding = 0, communication = 0, decoding = 0, rest = 0;
};

Prediction predict(const Case& it, std::string_view method, int workers, double gbps);

// "none" first, then as the profile has them.
std::vector<std::string> methods(const Case& it);

// The best of methods(), by the lengths of their steps: the shortest of those that win and whose gathered messages fit into
// memory, or else plain DDP's. The one rule, whoever asks.
std::size_t best_of(const Case& it, std::span<const double> steps, int workers);

// Where the method starts or ceases to win.
std::vector<double> break_even_gbps(const Case& it, std::string_view method, int workers);

struct MethodAdvice {
  Prediction predicted = {};
  bool wins = false;                    // Against plain DDP.
  std::vector<double> break_even = {};  // Gbit/s, at this number of workers; ascending.
  bool wins_on_slowest = false;         // Below all of them.
  std::optional<int> wins_up_to =
      {};                     // The largest number of workers, up to kMostWorkers, with which it wins here.
  double gathered_bytes = 0;  // That a rank receives at once.
  std::optional<int> fits_up_to =
      {};            // Workers whose gathered messages fit into the profile's memory, where it has one.
  bool fits = true;  // Here.
  double extra_memory_bytes_per_parameter = 0;
};

struct Advice {
  int workers = 2;
  double gbps = 1;
  std::vector<MethodAdvice> methods = {};  // As methods().
  std::size_t best_method = 0;             // Of these.
  std::optional<double> needed_ratio =
      {};  // For near-linear scaling by a codec that takes no time; nothing: none is enough.
  std::string verdict = {};

  const MethodAdvice& plain() const { return methods.front(); }
  const MethodAdvice& best() const { return methods[best_method]; }
};

Advice advise(const Case& it, int workers, double gbps);

// The same at every pair of these, the bandwidths of a number of workers one after the other.
std::vector<Advice> advise(const Case& it, std::span<const int> workers, std::span<const double> gbps);

// Where the best method changes between plain DDP and others, over a range of bandwidths: "Below 3.1 Gbit/s: topk:keep=0.01."
struct Regime {
  double from_gbps, to_gbps;
  std::string best;
};
std::vector<Regime> regimes(const Case& it, int workers, Range gbps);

}  // namespace accordion::perf
