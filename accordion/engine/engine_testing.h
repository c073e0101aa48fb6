// What the engine's tests share: three tensors, gradients that every test knows, a step.
#pragma once

#include <cmath>
#include <exception>
#include <future>
#include <vector>

#include "accordion/base/noise_testing.h"
#include "accordion/comm/loopback.h"
#include "accordion/engine/engine.h"

namespace accordion {

using Floats = std::vector<float>;

inline const std::vector<TensorInfo> kTensors = {{"a", {{40, 30}}}, {"b", {{50, 40}}}, {"c", {{9}}}};

inline Floats gradient(std::size_t tensor, int rank, int step) {
  return noise(kTensors[tensor].shape.count(),
               static_cast<unsigned>(1000 * step + 10 * rank) + static_cast<unsigned>(tensor));
}

// One step, a bucket a tensor, last tensors first. Throws what the engine says went wrong.
inline std::vector<Floats> run_step(Engine& engine, std::vector<Floats> gradients) {
  std::vector<std::promise<void>> done(gradients.size());
  for (std::size_t k = gradients.size(); k-- > 0;)
    engine.post({.values = std::span<float>(gradients[k]),
                 .slices = {{static_cast<int>(k), 0, gradients[k].size()}},
                 .last = k == 0},
                [&, k](const std::exception_ptr& failure) {
                  failure ? done[k].set_exception(failure) : done[k].set_value();
                });
  std::exception_ptr first;
  for (std::promise<void>& bucket : done) try {
      bucket.get_future().get();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
  return gradients;
}

inline std::vector<Floats> gradients_of(int rank, int step) {
  std::vector<Floats> gradients;
  for (std::size_t t = 0; t < kTensors.size(); ++t) gradients.push_back(gradient(t, rank, step));
  return gradients;
}

// Of all of them together.
inline double norm_of(const std::vector<Floats>& tensors) {
  double squares = 0;
  for (const Floats& tensor : tensors)
    for (float value : tensor) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

inline const ControlOptions kAccordion{
    .controller = "accordion", .mild = "topk:keep=0.5", .strong = "topk:keep=0.02", .interval = 1};

}  // namespace accordion
