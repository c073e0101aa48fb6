#include "bench/models.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "accordion/base/error.h"
#include "accordion/data/dataset.h"
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion::bench {
namespace {

struct Batch {
  torch::Tensor input, targets;
};

Batch made_up(const ImageShape& shape, int images, int) {
  return {torch::randn({images, shape.channels, shape.height, shape.width}),
          torch::randint(shape.classes, {images}, torch::kLong)};
}

Batch made_up(const TextShape& shape, int streams, int positions) {
  return {torch::randint(shape.vocabulary, {streams, positions}, torch::kLong),
          torch::randint(shape.vocabulary, {std::int64_t{1} * streams * positions}, torch::kLong)};
}

Batch made_up(const TableShape& shape, int rows, int) {
  std::vector<torch::Tensor> columns = {torch::randn({rows, shape.numbers})};
  for (const int categories : shape.tables)
    columns.push_back(torch::randint(categories, {rows, 1}, torch::kFloat));
  return {torch::cat(columns, 1), torch::randint(2, {rows}, torch::kLong)};
}

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

std::vector<ModelCase> default_model_cases() {
  return {{"cnn", "fashion-mnist", 128}, {"resnet20", "cifar10", 64}, {"resnet18", "cifar10", 16},
          {"vgg19bn", "cifar10", 32},    {"senet", "cifar10", 16},    {"seresnet18", "cifar100", 16},
          {"densenet", "cifar10", 16},   {"googlenet", "cifar10", 8}, {"wideresnet", "cifar10", 4},
          {"lstm", "wikitext2", 16},     {"gpt", "sotu", 16},         {"dlrm", "clicks", 256}};
}

std::vector<ModelCase> model_cases(const std::vector<std::string>& models, const std::string& data,
                                   int batch) {
  const auto known = default_model_cases();
  std::vector<ModelCase> cases;
  for (const std::string& setting : models) {
    parse_model(setting);
    const auto found = std::find_if(known.begin(), known.end(), [&](const ModelCase& each) {
      return each.model == setting.substr(0, setting.find(':'));
    });
    if (found == known.end()) throw Error("bench models has no data and batch for " + setting);
    cases.push_back({setting, found->data, found->batch});
  }
  if (models.empty()) {
    const auto fitting = data.empty() ? model_names() : model_names(dataset_facts(data).input);
    std::copy_if(known.begin(), known.end(), std::back_inserter(cases), [&](const ModelCase& each) {
      return std::find(fitting.begin(), fitting.end(), each.model) != fitting.end();
    });
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
  const Batch batch =
      std::visit([&](const auto& shape) { return made_up(shape, chosen.batch, options.bptt); }, facts.input);
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
  if (std::holds_alternative<TextShape>(facts.input)) timing.bptt = options.bptt;
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
