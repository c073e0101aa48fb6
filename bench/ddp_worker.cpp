#include "bench/ddp_worker.h"

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

#include "accordion/base/error.h"
#include "accordion/comm/c10d_group.h"
#include "accordion/ddp/ddp.h"
#include "accordion/engine/engine.h"
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion::bench {
namespace {

// Numbers that both sides make alike without sharing a generator.
std::pair<torch::Tensor, torch::Tensor> make_bench_batch(int rank, const WorkerOptions& options) {
  const std::int64_t count = std::int64_t{1} * options.batch * options.channels * options.size * options.size;
  const auto images = torch::sin(torch::arange(count, torch::kDouble) * 0.7 + rank).to(torch::kFloat);
  const auto labels = (torch::arange(options.batch, torch::kLong) * 3 + rank) % options.classes;
  return {images.reshape({options.batch, options.channels, options.size, options.size}), labels};
}

void write_tensors(const std::string& path, const std::vector<torch::Tensor>& tensors) {
  std::ofstream file(path, std::ios::binary);
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor dense = tensor.detach().contiguous();
    file.write(static_cast<const char*>(dense.data_ptr()), static_cast<std::streamsize>(dense.nbytes()));
  }
  if (!file.flush()) throw Error("cannot write " + path);
}

}  // namespace

void run_ddp_worker(const Rendezvous& meeting, const WorkerOptions& options) {
  using Clock = std::chrono::steady_clock;
  torch::set_num_threads(options.threads);
  torch::manual_seed(1);
  Group group = c10d_group(meeting);
  DistributedDataParallel<Network> ddp(
      make_model(options.model, ImageShape{options.channels, options.size, options.size, options.classes}),
      group, {.gradient_as_bucket_view = true});
  const auto parameters = ddp.module().parameters();
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(1e-3).momentum(0.9));
  const auto [images, labels] = make_bench_batch(meeting.rank, options);
  const auto backward = [&, images = images, labels = labels] {
    ddp.zero_grad();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(ddp.forward(images), labels);
    ddp.backward(loss);
    return loss;
  };

  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, path;
    words >> command >> path;
    if (command == "weights") {
      if (meeting.rank == 0) write_tensors(path, parameters);
      std::cout << "ok" << std::endl;
    } else if (command == "verify") {
      const torch::Tensor loss = backward();
      std::vector<torch::Tensor> gradients;
      for (const torch::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
      if (meeting.rank == 0) write_tensors(path, gradients);
      std::cout << "ok " << loss.item<double>() << std::endl;
    } else if (command == "step") {
      ddp.engine().take_overlap();
      const auto begin = Clock::now();
      backward();
      optimizer.step();
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      const Overlap overlap = ddp.engine().take_overlap();
      std::cout << "ok " << seconds << ' ' << overlap.busy_seconds << ' ' << overlap.exposed_seconds
                << std::endl;
    } else {
      throw Error("unknown command " + command);
    }
  }
}

}  // namespace accordion::bench
