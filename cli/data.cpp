// accordion data NAME: fetches and converts a data set; without a name, lists them and where they are.
#include <cstdlib>
#include <iostream>

#include "accordion/base/json.h"
#include "accordion/base/names.h"
#include "accordion/base/options.h"
#include "accordion/data/dataset.h"
#include "accordion/data/fetch.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

struct DataArguments {
  std::string name, root;
  bool json = false;
};

Json row(const std::string& name, const std::filesystem::path& root) {
  const DatasetFacts facts = dataset_facts(name);
  bool here = true;
  std::string folder;
  try {
    folder = find_dataset(name, {}, root);
  } catch (const Error&) {
    here = false;
  }
  return {{"name", name},
          {"kind", sample_name(facts.input)},
          {"train_samples", facts.train_samples},
          {"test_samples", facts.test_samples},
          {"synthetic", facts.synthetic},
          {"here", here},
          {"folder", folder.empty() ? Json() : Json(folder)}};
}

std::string place(const Json& row) {
  const auto name = row["name"].get<std::string>();
  if (row["synthetic"].get<bool>()) return "made up on the spot from a fixed seed; needs no files";
  if (row["here"].get<bool>()) return row["folder"].get<std::string>();
  return "not here; accordion data " + name + (can_be_fetched(name) ? " fetches it" : " says how to get it");
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

int list(const std::filesystem::path& root, bool as_json) {
  Json rows = Json::array();
  for (const std::string& name : dataset_names()) rows.push_back(row(name, root));
  if (as_json) {
    std::cout << rows.dump(2) << "\n";
    return 0;
  }
  for (const Json& row : rows)
    std::cout << padded(row["name"], 15)
              << padded(row["train_samples"].dump() + " + " + row["test_samples"].dump() + " " +
                            row["kind"].get<std::string>(),
                        26)
              << place(row) << "\n";
  return 0;
}

}  // namespace

Run add_data(CLI::App& verb) {
  auto arguments = std::make_shared<DataArguments>();
  verb.add_option("name", arguments->name, "Data set to fetch: " + join(dataset_names()));
  verb.add_option("--data-dir", arguments->root,
                  "Where data sets are kept (default $ACCORDION_DATA, or ~/.cache/accordion).");
  verb.add_flag("--json", arguments->json, "One JSON array on standard output.");
  return [arguments] {
    const std::filesystem::path root =
        arguments->root.empty() ? default_data_root(std::getenv("ACCORDION_DATA"), std::getenv("HOME"))
                                : std::filesystem::path(arguments->root);
    if (arguments->name.empty()) return list(root, arguments->json);
    fetch_dataset(arguments->name, root, [](const std::string& line) { std::cerr << line << "\n"; });
    const Json fetched = row(arguments->name, root);
    if (arguments->json)
      std::cout << fetched.dump(2) << "\n";
    else
      std::cout << arguments->name << (fetched["synthetic"].get<bool>() ? " is " : " is in ")
                << place(fetched) << "\n";
    return 0;
  };
}

}  // namespace accordion::cli
