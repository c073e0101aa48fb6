// Every controller there is. What one is called, what it takes and how it is made stands in its own source and
// nowhere else: whoever wants to know asks here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "accordion/adapt/control_options.h"
#include "accordion/adapt/controller.h"
#include "accordion/compress/codecs.h"

namespace accordion {

// How a run names the levels that its controller chooses from.
enum class TakesLevels {
  kOne,      // `codec`, throughout.
  kBetween,  // `mild` and `strong`, or more as `levels`.
  kLadder,   // The same; of mild and strong also the settings that lie between them.
  kFamily,   // The same, or the name of a codec, for the whole range of it that is in use.
  kOwn,      // Not at all: the controller makes them.
};

enum class SetsBatch {
  kNever,
  kInstead,  // Where the run says so, and then leaves levels alone: there is one, `codec`.
  kAlways,
};

struct ControllerKind {
  std::string name, help;
  TakesLevels levels = TakesLevels::kBetween;
  SetsBatch batch = SetsBatch::kNever;

  // Throws UsageError for options that it cannot work with.
  std::function<std::unique_ptr<Controller>(const ControlOptions&, std::size_t layers, int levels)> make;

  // Of TakesLevels::kOwn, for a model of so many parameters.
  std::function<std::vector<CodecOptions>(const ControlOptions&, std::size_t parameters)> own_levels = {};
};

std::vector<ControllerKind> controllers();

// Throws UsageError for a name that no controller has.
ControllerKind find_controller(const std::string& name);

// One of the caller's own, known by its name from then on. Before runs are started, on every rank. Throws
// UsageError for a name that is taken.
void add_controller(ControllerKind kind);

}  // namespace accordion
