// accordion VERB ...: finds the verb, runs it, and turns failures into messages and exit statuses.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>

#include "accordion/base/error.h"
#include "accordion/base/names.h"
#include "accordion/base/version.h"
#include "cli/verbs.h"

namespace {

using accordion::cli::Run;

// What was mistyped, with the nearest thing that exists.
std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const auto chosen = app.get_subcommands();
  std::vector<std::string> names;
  if (chosen.empty()) {
    for (const CLI::App* verb : app.get_subcommands(nullptr)) names.push_back(verb->get_name());
    if (argc > 1 && argv[1][0] != '-') return accordion::unknown_name("verb", argv[1], names);
    return "no verb given. There are: " + accordion::join(names);
  }
  const CLI::App* verb = chosen.front();
  for (; !verb->get_subcommands().empty(); verb = verb->get_subcommands().front()) {
  }
  if (const auto inner = verb->get_subcommands([](const CLI::App* app) { return !app->get_group().empty(); });
      !inner.empty()) {
    for (const CLI::App* each : inner) names.push_back(each->get_name());
    const auto extras = app.remaining(true);
    return extras.empty() ? "accordion " + verb->get_name() + " what? There are: " + accordion::join(names)
                          : accordion::unknown_name(verb->get_name(), extras.front(), names);
  }
  for (const CLI::Option* option : verb->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const std::string& extra : app.remaining(true)) {
    const std::string name = extra.substr(0, extra.find('='));
    if (name.empty() || name[0] != '-') return "unexpected argument \"" + extra + "\"";
    const std::string nearest = accordion::nearest_name(name, names);
    return "unknown option " + name + (nearest.empty() ? "" : "; did you mean " + nearest + "?") +
           " See accordion " + verb->get_name() + " --help";
  }
  return error.what();
}

// Messages quote files, which may hold what a terminal would obey.
std::string printable(std::string text) {
  for (char& c : text)
    if ((c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f') c = '?';
  return text;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Accordion compresses gradients hard except where it would hurt: it watches each layer's gradient "
      "norm, "
      "and sends more while the network is in a critical learning regime.");
  app.name("accordion");
  app.set_version_flag("--version", std::string("accordion ") + accordion::kVersion);
  app.require_subcommand(1);

  std::map<const CLI::App*, Run> runs;
  const auto add = [&](const char* name, const char* what, auto&& add_options) {
    CLI::App* verb = app.add_subcommand(name, what);
    runs[verb] = add_options(*verb);
  };
  try {
    add("train", "Train a model with one or more workers.",
        [&](CLI::App& verb) { return accordion::cli::add_train(verb, argc, argv); });
    add("resume", "Go on with a run from its last checkpoint.",
        [&](CLI::App& verb) { return accordion::cli::add_resume(verb, argc, argv); });
    add("export", "Write a run's model as a safetensors file.",
        [](CLI::App& verb) { return accordion::cli::add_export(verb); });
    add("compare", "Train several settings with several seeds, and print one table of them.",
        [](CLI::App& verb) { return accordion::cli::add_compare(verb); });
    add("report", "Make one page of runs, or of a comparison: charts, tables, reasons; it opens from disk.",
        [](CLI::App& verb) { return accordion::cli::add_report(verb); });
    add("watch", "Serve that page of a run while it goes on, to this machine alone.",
        [](CLI::App& verb) { return accordion::cli::add_watch(verb); });
    add("decide", "Replay recorded norms through a controller: each layer's level, and why.",
        [](CLI::App& verb) { return accordion::cli::add_decide(verb); });
    add("traffic", "What a run would send, without training.",
        [](CLI::App& verb) { return accordion::cli::add_traffic(verb); });
    add("calibrate", "Measure machine and network, and write a profile of them.",
        [&](CLI::App& verb) { return accordion::cli::add_calibrate(verb, argv); });
    add("advise", "Whether compressing pays on a machine and a network, and with which method.",
        [](CLI::App& verb) { return accordion::cli::add_advise(verb); });
    add("models", "List the models.", [](CLI::App& verb) { return accordion::cli::add_models(verb); });
    add("data", "Fetch a data set, or list them.",
        [](CLI::App& verb) { return accordion::cli::add_data(verb); });
    add("bench", "Verify, then time.", [&](CLI::App& verb) { return accordion::cli::add_bench(verb, argv); });
    app.parse(argc, argv);
    const int status = runs.at(app.get_subcommands().front())();
    if (!std::cout.flush() || std::fflush(stdout) != 0)
      throw accordion::Error("standard output cannot be written");
    return status;
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "accordion: " << explain(app, error, argc, argv) << "\n";
    return 2;
  } catch (const accordion::UsageError& error) {
    std::cerr << "accordion: " << printable(error.what()) << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "accordion: " << printable(error.what()) << "\n";
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int status = run(argc, argv);
  std::cout.flush();
  std::fflush(nullptr);
  // Not by way of static destructors: libtorch takes a tenth of a second for its own, and nothing is left to save.
  std::_Exit(status);
}
