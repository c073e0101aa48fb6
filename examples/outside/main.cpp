// A project of one's own: the C++ DistributedDataParallel around any module, with gradients that are compressed
// hard except where it would hurt. Ranks are threads here, each with a group of its own, and would be processes
// on several machines in earnest.
#include <accordion/comm/c10d_group.h>
#include <accordion/ddp/ddp.h>
#include <accordion/launch/free_port.h>

#include <cmath>
#include <iostream>
#include <set>
#include <thread>

constexpr int kRanks = 2, kEpochs = 6, kSteps = 8;

struct Outcome {
  float loss = 0;
  std::set<int> allowed;  // Levels that the controller let the first layer have; 0 is mild.
};

// Which of two halves of the input is larger: learnt in a few steps.
Outcome train(int rank, int port, torch::nn::Sequential net, torch::Tensor input, torch::Tensor target) {
  accordion::Group group = accordion::c10d_group({.rank = rank, .size = kRanks, .port = port});
  accordion::DistributedDataParallel ddp(net, group,
                                         {.control = {.controller = "accordion",
                                                      .mild = "powersgd:approx-rank=4",
                                                      .strong = "powersgd:approx-rank=1",
                                                      .interval = 1}});
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  Outcome outcome;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (int step = 0; step < kSteps; ++step) {
      optimizer.zero_grad();
      const torch::Tensor error = torch::nn::functional::cross_entropy(ddp.forward(input), target);
      ddp.backward(error);
      optimizer.step();
      outcome.loss = error.item<float>();
    }
    const accordion::EpochReport report = ddp.end_epoch(0.1);  // Decides the levels of the next epoch.
    if (rank != 0) continue;                                   // Rank 0 decides, and knows why.
    const accordion::LayerRecord& layer = report.layers[0];
    outcome.allowed.insert(*layer.may);
    std::cout << "epoch " << epoch << ": loss " << outcome.loss << ", sent "
              << report.stats.traffic.payload_bytes << " bytes; " << layer.name << " was " << layer.codec
              << " (" << layer.reason << ")\n";
  }
  return outcome;
}

int main() {
  torch::manual_seed(1);
  const int port = accordion::free_port();
  Outcome outcomes[kRanks];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    torch::nn::Sequential net(torch::nn::Linear(64, 64), torch::nn::ReLU(), torch::nn::Linear(64, 2));
    const torch::Tensor input = torch::randn({128, 64});
    const torch::Tensor target =
        (input.narrow(1, 0, 32).sum(1) > input.narrow(1, 32, 32).sum(1)).to(torch::kLong);
    threads.emplace_back([=, &outcomes] { outcomes[rank] = train(rank, port, net, input, target); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Outcome& outcome : outcomes)
    if (outcome.loss >= 0.5f) return 1;
  return outcomes[0].allowed == std::set{0, 1} ? 0 : 1;
}
