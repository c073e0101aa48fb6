// A step that is dropped leaves nothing behind: neither weights nor what layers keep beside them.
#include "accordion/ddp/ddp_testing.h"

namespace accordion {
namespace {

struct NormNetImpl : torch::nn::Module {
  NormNetImpl() {
    in = register_module("in", torch::nn::Linear(4, 6));
    norm = register_module("norm", torch::nn::BatchNorm1d(6));
    out = register_module("out", torch::nn::Linear(6, 3));
  }
  Tensor forward(Tensor x) { return out(norm(in(x)).tanh()); }
  torch::nn::Linear in{nullptr}, out{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(NormNet);

std::vector<Tensor> copies(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.detach().clone());
  return result;
}

bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) { return torch::equal(x, y); });
}

// Rank 1's second step has a value that is not finite, in the micro-batch `bad_micro` of three.
void drop_a_step(int bad_micro, bool plain_backward) {
  constexpr int kRanks = 2, kSteps = 3, kMicro = 3, kBad = 1;
  torch::manual_seed(5);
  std::vector<NormNet> nets;
  for (int rank = 0; rank < kRanks; ++rank) nets.emplace_back();
  const Tensor images = torch::randn({kRanks, kSteps, kMicro, 8, 4}),
               labels = torch::randint(3, {8}, torch::kLong);
  run_ranks(kRanks, [&](Group& group) {
    DdpOptions options;
    options.communication.on_non_finite = NonFinite::kSkip;
    DistributedDataParallel ddp(nets[static_cast<std::size_t>(group.rank())], group, options);
    torch::optim::SGD optimizer(ddp->parameters(), 0.1);
    for (int step = 0; step < kSteps; ++step) {
      const auto weights = copies(ddp->parameters()), buffers = copies(ddp->buffers());
      ddp.zero_grad();
      for (int micro = 0; micro < kMicro; ++micro) {
        Tensor input = images[group.rank()][step][micro].clone();
        if (group.rank() == 1 && step == kBad && micro == bad_micro) input[3][2] = std::nanf("");
        std::optional<DataParallel::NoSync> accumulate_only;
        if (micro + 1 < kMicro) accumulate_only.emplace(ddp);
        const Tensor loss = loss_of(ddp.forward(input), labels);
        if (plain_backward)
          loss.backward();
        else
          ddp.backward(loss);
      }
      optimizer.step();
      if (plain_backward) ddp.sync_buffers();  // Whatever comes next finds them as they were.
      const bool dropped = step == kBad;
      EXPECT_EQ(equal(copies(ddp->parameters()), weights), dropped)
          << "rank " << group.rank() << ", step " << step;
      if (!plain_backward || dropped) {
        EXPECT_EQ(equal(copies(ddp->buffers()), buffers), dropped)
            << "rank " << group.rank() << ", step " << step;
      }
      for (const Tensor& buffer : ddp->buffers()) EXPECT_TRUE(buffer.isfinite().all().item<bool>());
    }
    ddp.sync_buffers();
    EXPECT_EQ(ddp->norm->num_batches_tracked.item<std::int64_t>(), (kSteps - 1) * kMicro);
    const torch::NoGradGuard no_grad;
    ddp->eval();
    EXPECT_TRUE(ddp.forward(images[0][0][0]).isfinite().all().item<bool>());
  });
}

TEST(Buffers, AreAsBeforeAStepThatWasDropped) {
  for (const int bad_micro : {0, 2}) drop_a_step(bad_micro, /*plain_backward=*/false);
}

TEST(Buffers, AreAsBeforeAlsoWhereBackwardIsTorchsOwn) {
  drop_a_step(2, /*plain_backward=*/true);
}

}  // namespace
}  // namespace accordion
