// accordion data NAME: fetches and converts a data set; without a name, lists them and where they are.
#include <cstdlib>
#include <iostream>

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

int list(const std::filesystem::path& root, bool as_json) {
  Json rows = Json::array();
  for (const std::string& name : dataset_names()) {
    std::string folder;
    try {
      folder = find_dataset(name, {}, root);
    } catch (const Error&) {
    }
    rows.push_back({{"name", name}, {"folder", folder.empty() ? Json() : Json(folder)}});
  }
  if (as_json) {
    std::cout << rows.dump(2) << "\n";
    return 0;
  }
  for (const Json& row : rows) {
    const auto name = row["name"].get<std::string>();
    std::cout << name << std::string(16 - name.size(), ' ')
              << (row["folder"].is_null() ? "not here; accordion data " + name
                                          : row["folder"].get<std::string>())
              << "\n";
  }
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
    const auto folder =
        fetch_dataset(arguments->name, root, [](const std::string& line) { std::cerr << line << "\n"; });
    if (arguments->json)
      std::cout << Json{{"name", arguments->name}, {"folder", folder.string()}}.dump(2) << "\n";
    else
      std::cout << arguments->name << " is in " << folder.string() << "\n";
    return 0;
  };
}

}  // namespace accordion::cli
