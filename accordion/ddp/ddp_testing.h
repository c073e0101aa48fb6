// What the tests of this folder train: ranks that are threads with process groups of their own, connected
// over loopback as processes would be, and a small network.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "accordion/base/error.h"
#include "accordion/comm/c10d_group.h"
#include "accordion/ddp/ddp.h"
#include "accordion/engine/engine.h"
#include "accordion/launch/free_port.h"

namespace accordion {

using torch::Tensor;

inline void run_ranks(int ranks, const std::function<void(Group&)>& body) {
  const int port = free_port();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Group group =
            c10d_group({.rank = rank, .size = ranks, .port = port, .timeout = std::chrono::seconds(20)});
        body(group);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

// Convolution, bias, a tensor that is used twice: no BatchNorm, whose statistics are of one rank's batch.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 5, 3)));
    hidden = register_module("hidden", torch::nn::Linear(5 * 6 * 6, 17));
    again = register_module("again", torch::nn::Linear(17, 17));
    out = register_module("out", torch::nn::Linear(17, 3));
  }
  Tensor forward(Tensor x) {
    x = hidden(conv(x).tanh().flatten(1)).tanh();
    return out(again(again(x).tanh()).tanh());
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::Linear hidden{nullptr}, again{nullptr}, out{nullptr};
};
TORCH_MODULE(Net);

inline Net make_net(std::uint64_t seed, torch::Dtype dtype) {
  torch::manual_seed(seed);
  Net net;
  net->to(dtype);
  return net;
}

// The generator is shared by the threads of one process, so everything random is made up front.
struct Problem {
  Tensor images, labels;
  Problem(std::int64_t samples, torch::Dtype dtype) {
    torch::manual_seed(7);
    images = torch::randn({samples, 2, 8, 8}, dtype);
    labels = torch::randint(3, {samples}, torch::kLong);
  }
};

inline Tensor loss_of(const Tensor& scores, const Tensor& labels) {
  return torch::nn::functional::cross_entropy(scores, labels);
}

inline std::vector<Tensor> gradients(torch::nn::Module& module) {
  std::vector<Tensor> result;
  for (const Tensor& parameter : module.parameters()) result.push_back(parameter.grad().clone());
  return result;
}

inline double largest_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, (a[i] - b[i]).abs().max().item<double>() / b[i].abs().max().item<double>());
  return largest;
}

inline constexpr std::size_t kTinyBuckets = 512;

}  // namespace accordion
