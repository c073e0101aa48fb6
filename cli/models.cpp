// accordion models: the zoo.
#include <cstdio>
#include <iostream>

#include "accordion/base/json.h"
#include "accordion/base/options.h"
#include "accordion/models/describe.h"
#include "accordion/models/zoo.h"
#include "cli/verbs.h"

namespace accordion::cli {

Run add_models(CLI::App& verb) {
  auto json = std::make_shared<bool>(false);
  verb.add_flag("--json", *json, "One JSON array on standard output.");
  return [json] {
    Json rows = Json::array();
    for (const ModelDescription& model : describe_models())
      rows.push_back({{"name", model.name},
                      {"data", model.data},
                      {"parameters", model.parameters},
                      {"tensors", model.tensors},
                      {"compressible_tensors", model.compressible_tensors}});
    if (*json) {
      std::cout << rows.dump(2) << "\n";
      return 0;
    }
    std::printf("%-12s %-18s %12s %8s %13s\n", "model", "data", "parameters", "tensors", "compressible");
    for (const Json& row : rows)
      std::printf("%-12s %-18s %12lld %8d %13d\n", row["name"].get<std::string>().c_str(),
                  row["data"].get<std::string>().c_str(), row["parameters"].get<long long>(),
                  row["tensors"].get<int>(), row["compressible_tensors"].get<int>());
    std::printf(
        "Narrower or wider: resnet18:width=0.25 has a quarter of the channels, lstm:hidden=200 fewer units.\n"
        "wikitext2-nominal: with the 28869 words that the published parameter count implies.\n");
    return 0;
  };
}

}  // namespace accordion::cli
