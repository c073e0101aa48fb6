// accordion export RUN FILE: the model of a run's last checkpoint, as safetensors: parameters and buffers by their names.
#include <iostream>

#include "accordion/base/error.h"
#include "accordion/log/read_run.h"
#include "accordion/log/run_folder.h"
#include "accordion/run/checkpoints.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

int export_model(const std::string& folder, const std::string& file) {
  read_run(folder);  // Says what is wrong with a folder that is not a run's.
  const auto warn = [](const std::string& text) { std::cerr << "accordion: warning: " << text << "\n"; };
  const auto checkpoint = newest_checkpoint(std::filesystem::path(folder) / kCheckpointsFolder, warn);
  if (!checkpoint)
    throw Error(folder + ": has no checkpoint to export; `accordion train` writes them unless told never to");
  constexpr std::string_view kModel = "model/";
  Arrays model;
  for (const auto& [name, array] : checkpoint->common.arrays())
    if (name.starts_with(kModel)) model[name.substr(kModel.size())] = array;
  const WrittenFile written = write_safetensors(file, model);
  std::cout << file << ": " << model.size() << " tensors, " << written.bytes << " bytes, after "
            << checkpoint->manifest.position.epoch << " whole epochs and "
            << checkpoint->manifest.position.epoch_step << " steps\n";
  return 0;
}

}  // namespace

Run add_export(CLI::App& verb) {
  auto folder = std::make_shared<std::string>(), file = std::make_shared<std::string>();
  verb.add_option("RUN", *folder, "Folder of the run.")->required();
  verb.add_option("FILE", *file, "safetensors file to write.")->required();
  return [folder, file] { return export_model(*folder, *file); };
}

}  // namespace accordion::cli
