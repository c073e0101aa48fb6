// accordion train: one run. Starts --workers ranks on this machine, or is itself one rank of a group that
// torchrun, mpirun or srun started.
#include <iostream>

#include "accordion/base/json.h"
#include "accordion/launch/place.h"
#include "cli/fields.h"
#include "cli/training.h"
#include "cli/verbs.h"

namespace accordion::cli {

Run add_train(CLI::App& verb, int argc, char** argv) {
  struct Arguments : TrainArguments {
    std::string recipe;
    bool print_config = false;
  };
  auto arguments = std::make_shared<Arguments>();
  add_fields(verb, "train", arguments->train);
  add_fields(verb, "train", arguments->launch);
  verb.add_option("--recipe", arguments->recipe,
                  "TOML file with any of these options; the command line overrides it.");
  verb.add_flag("--print-config", arguments->print_config, "Print what would run, as a recipe, and stop.");
  verb.add_flag("--explain-step", arguments->explain_step,
                "At the end, show one step as a chart: backward, encoding, wire and decoding, measured "
                "beside predicted.");
  add_output_flags(verb, *arguments);
  if (argc > 1 && std::string_view(argv[1]) == "train")
    if (const std::string recipe = recipe_argument(argc, argv); !recipe.empty())
      apply_recipe(recipe, arguments->train, arguments->launch);

  return [arguments, argc, argv] {
    if (!arguments->print_config) return run_or_launch(*arguments, argc, argv);
    const auto place = place_from_environment(::getenv);
    check_run_options(arguments->train, place ? place->world : arguments->launch.workers);
    std::cout << recipe_text(arguments->train) << recipe_text(arguments->launch);
    return 0;
  };
}

}  // namespace accordion::cli
