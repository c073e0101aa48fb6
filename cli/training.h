// What `train` and `resume` do alike: be one rank of a run, or start its ranks and see them to their end.
#pragma once

#include <CLI/CLI.hpp>

#include "accordion/run/options.h"
#include "cli/run_options.h"

namespace accordion::cli {

struct TrainArguments {
  TrainOptions train;
  LaunchOptions launch;
  bool json = false, explain_step = false, tensorboard = false, trace = false;
  bool regrouped = false;  // Go on with the run in launch.out, whose options these are, with these workers.
};

// What a run writes beside its record.
void add_output_flags(CLI::App& verb, TrainArguments& arguments);

// `argv` is the program's own, for the ranks that are started. Returns the exit status.
int run_or_launch(TrainArguments arguments, int argc, char** argv);

}  // namespace accordion::cli
