#include "accordion/train/run.h"

#include <torch/version.h>

#include <ctime>
#include <sstream>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/version.h"
#include "accordion/comm/c10d_group.h"
#include "accordion/exchange/agreement.h"
#include "accordion/log/write_file.h"
#include "accordion/run/recorder.h"
#include "accordion/run/replay.h"
#include "accordion/train/data_options.h"
#include "accordion/train/trainer.h"

namespace accordion {
namespace {

// One fact a line, so that a disagreement can be shown as the line that differs.
std::string lines_of(const Json& json) {
  std::string text;
  for (const auto& [key, value] : json.items()) text += key + " = " + value.dump() + "\n";
  return text;
}

void require_same_run(Communicator& control, const TrainOptions& options, const Dataset& data) {
  const DatasetFacts known = facts_of(data);
  std::ostringstream facts;
  facts << "data set = " << data.name << "\ntraining samples = " << known.train_samples
        << "\ntest samples = " << known.test_samples << "\nfingerprint = " << std::hex << fingerprint(data)
        << "\n";
  const Claim claims[] = {{"version", std::string("accordion ") + kVersion + ", torch " + TORCH_VERSION},
                          {"configuration", lines_of(to_json(options))},
                          {"data", facts.str()}};
  require_agreement(control, claims);
}

RunFolder folder_for(const TrainOptions& options, const RunSetup& setup) {
  const std::string model = options.model.substr(0, options.model.find(':'));
  return RunFolder(
      setup.out.empty() ? make_default_folder("runs", options.data, model, std::time(nullptr)) : setup.out,
      setup.if_taken);
}

// To memory first, so that a full disk spoils neither the last good model nor the message.
void save_model(Network& model, const RunFolder& folder) {
  std::ostringstream bytes;
  torch::serialize::OutputArchive archive;
  model.save(archive);
  archive.save_to(bytes);
  write_whole(folder.checkpoints() / "model.pt", bytes.str());
}

}  // namespace

RunOutcome run_training(const TrainOptions& given, const RunSetup& setup) {
  const TrainOptions options = resolve(given);
  if (std::error_code none;
      !options.replay.empty() && std::filesystem::equivalent(options.replay, setup.out, none))
    throw UsageError("train: out=" + setup.out.string() +
                     " is the run to be replayed, expected another folder");
  check_workers(options, setup.meeting.size);
  torch::set_num_threads(setup.threads);
  const Dataset data = load_data(options, setup.data_dir, setup.data_root);
  check_data(options, facts_of(data), setup.meeting.size);
  Group group = setup.connect(setup.meeting);
  require_same_run(group.control(), options, data);

  setup.on_start();
  const bool first = group.rank() == 0;
  std::optional<Recorder> recorder;
  std::optional<Progress> progress;
  if (first)
    recorder.emplace(folder_for(options, setup), options.control,
                     run_config(to_json(options), setup.meeting.size, setup.threads, TORCH_VERSION));
  if (first && setup.progress_out) {
    ProgressOptions shown = setup.progress;
    shown.unit = sample_unit(input_shape(data));
    progress.emplace(*setup.progress_out, shown);
  }

  RunOutcome outcome;
  try {
    Trainer trainer(options, data, group);
    for (int epoch = 0; epoch < options.epochs && !outcome.interrupted; ++epoch) {
      if (progress) progress->start_epoch(epoch + 1, trainer.epoch_samples());
      const auto record = trainer.run_epoch(epoch, setup.stop_requested, [&](const StepProgress& step) {
        if (progress) progress->advance(step.global_samples, step.loss);
      });
      outcome.interrupted = !record;
      if (!record) break;
      outcome.last = record;
      if (recorder) {
        recorder->add(*record);
        save_model(trainer.model(), recorder->folder());
      }
      if (progress) progress->finish_epoch(*record);
    }
    if (progress) progress->clear();
    if (setup.explain_step && !outcome.interrupted) outcome.explained_step = trainer.explain_step();
    if (recorder) {
      outcome.folder = recorder->folder().path();
      outcome.summary = recorder->finish(outcome.interrupted ? "interrupted" : "finished");
    }
  } catch (const std::exception& error) {
    if (progress) progress->clear();
    // The record says why it ends here, unless the record is what failed.
    try {
      if (recorder) recorder->finish("failed", error.what());
    } catch (const std::exception&) {
    }
    throw;
  }
  return outcome;
}

}  // namespace accordion
