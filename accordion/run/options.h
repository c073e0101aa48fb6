// What a run is. Everything here is recorded, compared between ranks and settable from the command line and a
// recipe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accordion/adapt/control.h"
#include "accordion/base/options.h"
#include "accordion/engine/guard_mode.h"

namespace accordion {

struct TrainOptions {
  std::string model = "cnn";
  std::string data = "fashion-mnist";
  std::int64_t samples = 0, test_samples = 0;
  int epochs = 10;
  int batch = 128;
  int accumulate = 1;
  bool drop_last = false;
  int bptt = 30, vocabulary = 0;
  std::int64_t seed = 1;

  std::string optimizer = "sgd";
  double lr = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 1e-4;
  bool decay_batchnorm = true;

  double warmup_epochs = 0;
  double warmup_lr = 0;
  std::string schedule = "constant";
  std::vector<int> milestones;
  double decay = 10;

  int crop_padding = 0;
  bool flip = false;
  double rotate = 0;

  ControlOptions control;
  std::string guard = "none";
  std::string profile = "";
  std::string replay = "";
  std::string initial = "";
  std::string diagnose = "none";
  double clip = 0;
  bool overlap = true;
  std::string non_finite = "propagate";

  void fields(auto&& field) {
    field("model", model, "Model to train; `accordion models` lists them.");
    field("data", data, "Data set; `accordion data` lists them.");
    field("samples", samples,
          "Train on the first N of the shuffled training set, or tokens of the text; 0 for all.",
          at_least(0));
    field("test-samples", test_samples, "Evaluate on the first N of the test set; 0 for all.", at_least(0));
    field("epochs", epochs, "Passes over the training set.", at_least(1));
    field("batch", batch, "Samples per worker and micro-batch; streams of text.", at_least(1));
    field("accumulate", accumulate, "Micro-batches per optimizer step.", at_least(1));
    field("drop-last", drop_last, "Leave out the last, smaller batch of an epoch.");
    field("bptt", bptt, "Text: positions over which gradients flow back.", at_least(1));
    field("vocabulary", vocabulary, "Text: keep only the N most frequent words; 0 for all.", at_least(0));
    field("seed", seed, "Seed of weights, order, augmentation and compression.", at_least(0));
    field("optimizer", optimizer, "Optimizer.", one_of({"sgd", "adamw"}));
    field("lr", lr, "Learning rate at its peak, for the whole group.", above(0));
    field("momentum", momentum, "Momentum of SGD.", at_least(0).below(1));
    field("nesterov", nesterov, "Nesterov momentum.");
    field("weight-decay", weight_decay, "Weight decay.", at_least(0));
    field("decay-batchnorm", decay_batchnorm, "Apply weight decay to BatchNorm parameters too.");
    field("warmup-epochs", warmup_epochs, "Epochs of linear warm-up, from warmup-lr to lr.", at_least(0));
    field("warmup-lr", warmup_lr, "Learning rate at which warm-up starts.", at_least(0));
    field("schedule", schedule, "Learning-rate schedule.", one_of({"constant", "step", "cosine"}));
    field("milestones", milestones, "Epochs at which the step schedule divides the learning rate.",
          at_least(1));
    field("decay", decay, "What the step schedule divides by.", above(1));
    field("crop-padding", crop_padding, "Pad images by this many pixels and crop at random.",
          at_least(0).up_to(16));
    field("flip", flip, "Mirror images at random.");
    field("rotate", rotate, "Rotate images at random by up to this many degrees.", at_least(0).up_to(180));
    control.fields(field);
    field("guard", guard,
          "Who sees to it that compression pays: nobody, so that runs repeat; `harmless` sends as little as "
          "it can "
          "in steps no longer than plain ones; `fastest` takes the shortest steps.",
          one_of(kGuardModes));
    field("profile", profile,
          "What the guard decides by, once, before the first step, where a codec keeps the optimizer's "
          "momentum (dgc) and "
          "so cannot change sides in mid-run: a profile of this model and batch, as `accordion calibrate` "
          "writes it.");
    field("replay", replay, "Run folder whose levels and batch sizes are applied, epoch by epoch.");
    field("initial", initial,
          "safetensors file of the weights to start from, as `accordion export` writes it; empty: random "
          "ones.");
    field("diagnose", diagnose, "Record the largest eigenvalue of the loss's Hessian after each epoch.",
          one_of({"none", "hessian"}));
    field("clip", clip, "Limit of each worker's gradient norm, before compression; 0 for none.", at_least(0));
    field("overlap", overlap, "Send gradients while backward goes on, rather than after it.");
    field("non-finite", non_finite,
          "Gradients of a step in which a worker's are not finite: NaN, 0, or the run stops.",
          one_of({"propagate", "skip", "throw"}));
  }
};

// Throws UsageError for a value out of its range, and for options that contradict each other.
void check_train_options(const TrainOptions& options);

// The same for what depends on the number of workers.
void check_workers(const TrainOptions& options, int workers);

// What is likely a mistake and yet allowed, in whole sentences.
std::vector<std::string> train_warnings(const TrainOptions& options);

// The learning rate at a point of training; `epoch` is fractional and counts from 0.
double learning_rate(const TrainOptions& options, double epoch);

}  // namespace accordion
