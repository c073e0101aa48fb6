#include "accordion/train/run.h"

#include <torch/version.h>

#include <ctime>
#include <sstream>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/version.h"
#include "accordion/comm/c10d_group.h"
#include "accordion/engine/epoch_trace.h"
#include "accordion/exchange/agreement.h"
#include "accordion/log/read_run.h"
#include "accordion/log/write_file.h"
#include "accordion/report/run_result.h"
#include "accordion/run/checkpoints.h"
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

void require_same_run(Communicator& control, const TrainOptions& options, const Dataset& data,
                      const RunSetup& setup) {
  const DatasetFacts known = facts_of(data);
  std::ostringstream facts;
  facts << "data set = " << data.name << "\ntraining samples = " << known.train_samples
        << "\ntest samples = " << known.test_samples << "\nfingerprint = " << std::hex << fingerprint(data)
        << "\n";
  const Claim claims[] = {{"version", std::string("accordion ") + kVersion + ", torch " + TORCH_VERSION},
                          {"configuration", lines_of(to_json(options))},
                          {"data", facts.str()},
                          {"checkpoints", lines_of({{"resume", static_cast<int>(setup.resume)},
                                                    {"unit", static_cast<int>(setup.checkpoint_every.unit)},
                                                    {"check_every", setup.check_every}})}};
  require_agreement(control, claims);
}

RunFolder folder_for(const TrainOptions& options, const RunSetup& setup) {
  const std::string model = options.model.substr(0, options.model.find(':'));
  return RunFolder(
      setup.out.empty() ? make_default_folder("runs", options.data, model, std::time(nullptr)) : setup.out,
      what_becomes_of(setup.out, options, setup.meeting.size, setup.resume, setup.if_taken));
}

// What a run that goes on has from the one before: when that started.
Json config_of(const TrainOptions& options, const RunSetup& setup, const RunFolder& folder) {
  Json config = run_config(to_json(options), setup.meeting.size, setup.threads, TORCH_VERSION);
  config["launch"] = setup.launch;
  if (setup.resume == Resume::kNo || !holds_run(folder.path())) return config;
  const Json before = read_run(folder.path()).config;
  if (const auto started = before.find("started"); started != before.end()) config["started"] = *started;
  return config;
}

// The record of a run, its checkpoints, and the display: what there is beside the training itself.
class TrainingRun {
 public:
  TrainingRun(const TrainOptions& options, const Dataset& data, Group& group, const RunSetup& setup)
      : options_(options),
        setup_(setup),
        first_(group.rank() == 0),
        clock_(setup.checkpoint_every, Clock::now()) {
    std::optional<RunFolder> folder;
    const bool holds = holds_run(setup.out);
    if (first_) folder.emplace(folder_for(options, setup));
    if (writes() || resumes())
      checkpoints_.emplace(first_ ? folder->checkpoints() : "", setup.keep, group.control());
    const auto note = [&](const std::string& text) {
      if (first_) setup_.note(text);
    };
    const std::uint64_t sent = group.sent_bytes();
    if (resumes()) loaded_ = checkpoints_->newest(note);
    looking_bytes_ = group.sent_bytes() - sent;
    if (first_) {
      const Json config = config_of(options, setup, *folder);
      recorder_.emplace(std::move(*folder), options.control, config,
                        loaded_ ? loaded_->manifest.position.epoch : 0);
      if (setup.tensorboard) recorder_->write_events();
    }
    if (resumes() && holds) note(loaded_ ? going_on() : "no checkpoint to go on from: the run starts anew");
    if (first_ && setup.progress_out) {
      ProgressOptions shown = setup.progress;
      shown.unit = sample_unit(input_shape(data));
      progress_.emplace(*setup.progress_out, shown);
    }
  }

  RunOutcome train(const Dataset& data, Group& group) try {
    RunOutcome outcome;
    Trainer trainer(options_, data, group, loaded_ ? &*loaded_ : nullptr, setup_.check_every);
    if (!loaded_) trainer.leave_out(looking_bytes_);
    loaded_.reset();
    if (recorder_ && !recorder_->records().empty()) outcome.last = recorder_->records().back();
    const TrainerCalls calls{.stop_requested = setup_.stop_requested,
                             .checkpoint_due =
                                 [&](bool ends_epoch) {
                                   return clock_.due(trainer.position().step + 1, ends_epoch,
                                                     trainer.position().epoch + 1, Clock::now());
                                 },
                             .write_checkpoint = [&] { write_checkpoint(trainer); },
                             .on_step =
                                 [&](const StepProgress& step) {
                                   if (progress_) progress_->advance(step.global_samples, step.loss);
                                 }};
    // The second epoch, when buckets are what they stay, or the only one.
    const int traced = std::min(trainer.position().epoch + 1, options_.epochs - 1);
    while (trainer.position().epoch < options_.epochs) {
      if (progress_) progress_->start_epoch(trainer.position().epoch + 1, trainer.samples_left());
      std::optional<EpochTrace> trace;
      if (setup_.trace && trainer.position().epoch == traced)
        trace.emplace(trainer.engine(), group.control());
      const auto record = trainer.run_epoch(calls);
      outcome.interrupted = !record;
      if (!record) break;
      outcome.last = record;
      if (recorder_) recorder_->add(*record);
      if (trace)
        if (const std::string text = trace->finish(); recorder_)
          write_whole(recorder_->folder().path() / kTraceFile, text);
      if (trainer.checkpoint_is_due() || trainer.position().epoch == options_.epochs)
        write_checkpoint(trainer);
      if (progress_) progress_->finish_epoch(*record);
    }
    if (progress_) progress_->clear();
    if (setup_.explain_step && !outcome.interrupted) outcome.explained_step = trainer.explain_step();
    if (recorder_) {
      outcome.folder = recorder_->folder().path();
      outcome.summary = recorder_->finish(outcome.interrupted ? "interrupted" : "finished");
    }
    return outcome;
  } catch (const std::exception& error) {
    if (progress_) progress_->clear();
    // The record says why it ends here, unless the record is what failed.
    try {
      if (recorder_) recorder_->finish("failed", error.what());
    } catch (const std::exception&) {
    }
    throw;
  }

 private:
  using Clock = CheckpointClock::Clock;

  bool resumes() const { return setup_.resume != Resume::kNo; }
  bool writes() const { return setup_.checkpoint_every.unit != CheckpointEvery::Unit::kNever; }

  // Collective. One that cannot be written costs no more than that.
  void write_checkpoint(Trainer& trainer) {
    if (!writes()) return;
    const auto begin = Clock::now();
    const std::string failure = trainer.write_checkpoint(*checkpoints_);
    clock_.wrote(begin, Clock::now());
    if (!failure.empty() && first_) setup_.note("warning: no checkpoint was written: " + failure);
  }

  std::string going_on() const {
    const Manifest& from = loaded_->manifest;
    std::string text =
        "going on from " + loaded_->path.string() + ": epoch " + std::to_string(from.position.epoch + 1);
    if (from.position.epoch_step > 0) text += ", after step " + std::to_string(from.position.epoch_step);
    if (from.workers != setup_.meeting.size)
      text += "; with " + std::to_string(setup_.meeting.size) + " workers instead of " +
              std::to_string(from.workers) +
              ", to whom what was not sent yet is handed on so that its mean stays";
    return text;
  }

  const TrainOptions& options_;
  const RunSetup& setup_;
  const bool first_;
  CheckpointClock clock_;
  std::optional<Checkpoints> checkpoints_;
  std::optional<LoadedCheckpoint> loaded_;
  std::uint64_t looking_bytes_ = 0;  // Sent in search of it, as a run that starts without a search does not.
  std::optional<Recorder> recorder_;
  std::optional<Progress> progress_;
};

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
  require_same_run(group.control(), options, data, setup);

  setup.on_start();
  return TrainingRun(options, data, group, setup).train(data, group);
}

}  // namespace accordion
