#include "bench/models.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/data/dataset.h"
#include "accordion/models/made_up.h"
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion::bench {
namespace {

// A step that leaves a parameter behind would be timed too fast. A gradient of zeros is none of its business:
// the few units of a squeeze may all be at rest.
void verify(const std::string& model, const torch::Tensor& loss, const torch::nn::Module& module) {
  if (!std::isfinite(loss.item<double>()))
    throw Error("bench models: the loss of " + model + " is " + number_text(loss.item<double>()) +
                ", expected a finite one");
  for (const auto& parameter : module.named_parameters()) {
    const torch::Tensor gradient = parameter.value().grad();
    if (!gradient.defined() || !gradient.isfinite().all().item<bool>())
      throw Error("bench models: " + model + "'s " + parameter.key() + " has " +
                  (gradient.defined() ? "a gradient that is not finite" : "no gradient"));
  }
}

}  // namespace

std::vector<ModelCase> model_cases(const std::vector<std::string>& models, const std::string& data,
                                   int batch) {
  std::vector<ModelCase> cases;
  const auto fitting = data.empty() ? model_names() : model_names(dataset_facts(data).input);
  for (const std::string& setting : models.empty() ? fitting : models) {
    const Usual usual = usual_of(setting);
    cases.push_back({setting, std::string(usual.data), usual.batch});
  }
  for (ModelCase& chosen : cases) {
    if (!data.empty()) chosen.data = data;
    if (batch != 0) chosen.batch = batch;
    check_model(chosen.model, dataset_facts(chosen.data).input);
  }
  return cases;
}

ModelTiming time_model(const ModelCase& chosen, const ModelBenchOptions& options) {
  using Clock = std::chrono::steady_clock;
  check_window(chosen.model, options.bptt);
  torch::set_num_threads(options.threads);
  torch::manual_seed(1);
  const DatasetFacts facts = dataset_facts(chosen.data);
  const auto model = make_model(chosen.model, facts.input);
  const MadeUpBatch batch = made_up(facts.input, chosen.batch, options.bptt);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9));
  const auto step = [&] {
    optimizer.zero_grad();
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(model->forward(batch.input), batch.targets);
    loss.backward();
    optimizer.step();
    return loss;
  };
  verify(chosen.model, step(), *model);  // Memory is asked for in this one.

  std::vector<double> times;
  double spent_ms = 0;
  while (times.empty() || spent_ms < 1000 * options.seconds) {
    const auto begin = Clock::now();
    step();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    spent_ms += times.back();
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::size_t parameters = 0;
  for (const torch::Tensor& parameter : model->parameters())
    parameters += static_cast<std::size_t>(parameter.numel());
  ModelTiming timing{.unit = std::string(sample_name(facts.input)),
                     .bptt = std::nullopt,
                     .parameters = parameters,
                     .step_samples = static_cast<std::size_t>(batch.targets.numel()),
                     .train_samples = facts.train_samples,
                     .steps = static_cast<int>(times.size()),
                     .step_ms = *middle};
  if (in_windows(facts.input)) timing.bptt = options.bptt;
  return timing;
}

Json to_json(const ModelCase& model, const ModelBenchOptions& options, const ModelTiming& timing) {
  return {{"model", model.model},
          {"data", model.data},
          {"parameters", timing.parameters},
          {"batch", model.batch},
          {"bptt", timing.bptt ? Json(*timing.bptt) : Json(nullptr)},
          {"threads", options.threads},
          {"unit", timing.unit},
          {"steps", timing.steps},
          {"step_ms", timing.step_ms},
          {"samples_per_second", timing.samples_per_second()},
          {"epoch_seconds", timing.epoch_seconds()}};
}

}  // namespace accordion::bench
