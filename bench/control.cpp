#include "bench/control.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "accordion/adapt/accordion.h"
#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/exchange/watch.h"
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion::bench {
namespace {

constexpr int kChannels = 3, kSize = 32, kClasses = 10;

// The middle of several: steps of a second or so, beside whatever else the machine does.
template <class Work>
double median_ms(int repetitions, Work&& work) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
  return times[static_cast<std::size_t>(repetitions / 2)];
}

std::span<const float> values(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// Twice the same gradient is what the watch has seen.
void verify(const std::vector<double>& norms, const std::vector<torch::Tensor>& gradients) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const double expected = 2 * gradients[i].to(torch::kDouble).norm().item<double>();
    if (std::abs(norms[i] - expected) > 1e-5 * expected)
      throw Error("bench control: the norm of tensor " + std::to_string(i) + " is " + number_text(norms[i]) +
                  ", expected " + number_text(expected));
  }
}

}  // namespace

ControlTiming time_control(const ControlBenchOptions& options) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const auto model = make_model(options.model, ImageShape{kChannels, kSize, kSize, kClasses});
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9));
  const auto images = torch::randn({options.batch, kChannels, kSize, kSize});
  const auto labels = torch::arange(options.batch) % kClasses;
  const auto step = [&] {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model->forward(images), labels).backward();
    optimizer.step();
  };
  step();  // Memory is asked for in the first.

  std::vector<Layer> layers;
  std::vector<torch::Tensor> gradients;
  std::size_t parameters = 0;
  for (const auto& item : model->named_parameters()) {
    layers.emplace_back(TensorInfo{item.key(), {item.value().sizes().vec()}});
    gradients.push_back(item.value().grad().contiguous());
    parameters += layers.back().info().shape.count();
  }
  Watch watch({.norms = true}, layers);
  const auto watch_step = [&] {
    for (std::size_t i = 0; i < gradients.size(); ++i) watch.add(static_cast<int>(i), values(gradients[i]));
    watch.end_step();
  };
  const std::vector<CodecOptions> levels = {PowerSgdOptions{.approx_rank = 2},
                                            PowerSgdOptions{.approx_rank = 1}};
  watch_step();
  watch_step();
  verify(watch.take(layers, levels, 4, {}).norms, gradients);

  const auto controller = make_accordion({.interval = 1}, layers.size(), 2);
  int window = 0;
  ControlTiming timing{.parameters = parameters,
                       .step_ms = 0,
                       .watch_ms = 0,
                       .decide_ms = 0,
                       .steps_per_epoch = options.steps_per_epoch};
  timing.step_ms = median_ms(options.repetitions, step);
  timing.watch_ms = median_ms(options.repetitions, watch_step);
  timing.decide_ms = median_ms(options.repetitions, [&] {
    const WindowStats stats = watch.take(layers, levels, 4, {});
    controller->decide(
        {.window = window++, .lr = 1, .next_lr = 1, .norms = stats.norms, .steps = stats.steps});
  });
  return timing;
}

Json to_json(const ControlBenchOptions& options, const ControlTiming& timing) {
  return {{"model", options.model},
          {"parameters", timing.parameters},
          {"batch", options.batch},
          {"step_ms", timing.step_ms},
          {"watch_ms", timing.watch_ms},
          {"decide_ms", timing.decide_ms},
          {"steps_per_epoch", timing.steps_per_epoch},
          {"share", timing.share()}};
}

}  // namespace accordion::bench
