// One file per verb: it adds its options to the command line, and returns what runs when the verb was given.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <utility>

namespace accordion::cli {

// Gives the exit status: 0 success, 2 the caller's mistake, 1 anything else.
using Run = std::function<int()>;

// `argv` is the program's own, for verbs that start the program again.
Run add_train(CLI::App& verb, int argc, char** argv);
Run add_resume(CLI::App& verb, int argc, char** argv);
Run add_export(CLI::App& verb);
Run add_compare(CLI::App& verb);
Run add_report(CLI::App& verb);
Run add_watch(CLI::App& verb);
Run add_decide(CLI::App& verb);
Run add_traffic(CLI::App& verb);
Run add_calibrate(CLI::App& verb, char** argv);
Run add_advise(CLI::App& verb);
Run add_data(CLI::App& verb);
Run add_models(CLI::App& verb);
Run add_bench(CLI::App& verb, char** argv);
std::pair<CLI::App*, Run> add_bench_collectives(CLI::App& bench, char** argv);

}  // namespace accordion::cli
