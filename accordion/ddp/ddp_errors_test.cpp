// Parameters that get no gradient, and what is refused: on every rank, and by name.
#include "accordion/ddp/ddp_testing.h"

namespace accordion {
namespace {

struct Branches : torch::nn::Module {
  Branches() {
    left = register_module("left", torch::nn::Linear(4, 2));
    right = register_module("right", torch::nn::Linear(4, 2));
    third = register_module("third", torch::nn::Linear(4, 2));
  }
  std::pair<Tensor, Tensor> forward(Tensor x, bool use_right) {
    return {left(x), use_right ? right(x) : left(x)};
  }
  torch::nn::Linear left{nullptr}, right{nullptr}, third{nullptr};
};

struct Sometimes : torch::nn::Module {
  Sometimes() {
    always = register_module("always", torch::nn::Linear(40, 4));
    sometimes = register_module("sometimes", torch::nn::Linear(torch::nn::LinearOptions(40, 40).bias(false)));
  }
  Tensor forward(Tensor x, bool both) { return always(both ? sometimes(x) : x); }
  torch::nn::Linear always{nullptr}, sometimes{nullptr};
};

TEST(DdpErrors, NamesParametersWithoutAGradient) {
  run_ranks(2, [&](Group& group) {
    DistributedDataParallel ddp(std::make_shared<Branches>(), group);
    const auto [a, b] = ddp.forward(torch::ones({3, 4}), false);
    try {
      ddp.backward((a + b).sum());
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                "rank " + std::to_string(group.rank()) +
                    ": backward gave no gradient to right.weight, right.bias, third.weight, third.bias; set "
                    "find_unused_parameters, or take them out of the model");
    }
  });
}

TEST(DdpErrors, PlainBackwardIsCheckedByTheNextForward) {
  run_ranks(2, [&](Group& group) {
    DistributedDataParallel ddp(std::make_shared<Branches>(), group);
    const auto [a, b] = ddp.forward(torch::ones({3, 4}), false);
    (a + b).sum().backward();
    EXPECT_THROW(ddp.forward(torch::ones({3, 4}), true), Error);
  });
}

// What a micro-batch before it used says nothing about the step that is sent.
TEST(DdpErrors, NamesParametersThatOnlyAnEarlierMicroBatchUsed) {
  run_ranks(2, [&](Group& group) {
    DistributedDataParallel ddp(std::make_shared<Sometimes>(), group);
    {
      const auto quiet = ddp.no_sync();
      ddp.backward(ddp.forward(torch::ones({3, 40}), true).sum());
    }
    EXPECT_THROW(ddp.backward(ddp.forward(torch::ones({3, 40}), false).sum()), Error);
  });
}

TEST(DdpErrors, FindsUnusedParametersAlsoWhenOnlySomeRanksUseThem) {
  std::vector<std::shared_ptr<Branches>> nets = {std::make_shared<Branches>(), std::make_shared<Branches>()};
  run_ranks(2, [&](Group& group) {
    auto net = nets[static_cast<std::size_t>(group.rank())];
    DistributedDataParallel ddp(net, group, {.find_unused_parameters = true});
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      const auto [a, b] = ddp.forward(torch::ones({3, 4}), group.rank() == 1);
      ddp.backward((a + b).sum());
      // Rank 0 sends nothing for `right`, rank 1 sends 3: the mean is 1.5. Each rank's `left` differs.
      EXPECT_EQ(net->right->bias.grad()[0].item<float>(), 1.5f);
      EXPECT_EQ(net->left->bias.grad()[0].item<float>(), (6 + 3) / 2.0f);
      EXPECT_TRUE(!net->third->bias.grad().defined() ||
                  net->third->bias.grad().abs().max().item<float>() == 0);
    }
  });
}

// What error feedback owes to a parameter waits for the step that uses it next: a parameter that no rank used keeps
// its gradient, so whatever were sent for it would be lost.
TEST(DdpErrors, LosesNothingOfAParameterThatNoRankUsedInAStep) {
  std::vector<std::shared_ptr<Sometimes>> nets;
  for (int rank = 0; rank < 2; ++rank) nets.push_back(std::make_shared<Sometimes>());
  run_ranks(2, [&](Group& group) {
    auto net = nets[static_cast<std::size_t>(group.rank())];
    DistributedDataParallel ddp(
        net, group,
        {.find_unused_parameters = true,
         .control = {.controller = "schedule", .levels = "topk:keep=0.01;none", .plan = "0@0-1,1"},
         .guard = GuardMode::kNone});
    const Tensor input = torch::arange(80, torch::kFloat).reshape({2, 40}) * (group.rank() + 1) / 80;
    Tensor received = torch::zeros_like(net->sometimes->weight), sent = received.clone();
    for (int step = 0; step < 9; ++step) {
      const bool both = step % 2 == 0;
      if (step == 8) ddp.end_epoch(0.1);  // Dense: what is owed arrives.
      ddp.zero_grad();
      if (both) {
        // The gradient of both ranks, which a step without the others would give.
        for (int rank = 0; rank < 2; ++rank) {
          const Tensor theirs = torch::arange(80, torch::kFloat).reshape({2, 40}) * (rank + 1) / 80;
          sent += net->always->weight.detach().sum(0).unsqueeze(1).matmul(theirs.sum(0).unsqueeze(0)) / 2;
        }
      }
      ddp.backward(ddp.forward(input, both).sum());
      if (both) received += net->sometimes->weight.grad();
    }
    EXPECT_LT((received - sent).abs().max().item<float>(), 1e-4 * sent.abs().max().item<float>());
  });
}

TEST(DdpErrors, WrapsAModuleOfUnknownType) {
  run_ranks(2, [&](Group& group) {
    torch::nn::AnyModule any(torch::nn::Linear(4, 2));
    DistributedDataParallel<torch::nn::AnyModule> ddp(any, group);
    ddp.backward(ddp.forward(torch::ones({3, 4}) * (group.rank() + 1)).sum());
    EXPECT_EQ(any.ptr()->parameters()[0].grad()[0][0].item<float>(), 4.5f);
  });
}

TEST(DdpErrors, RefusesModelsThatDiffer) {
  run_ranks(3, [&](Group& group) {
    torch::nn::Linear net(4, group.rank() == 1 ? 3 : 2);
    try {
      DistributedDataParallel ddp(net, group);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_STREQ(
          error.what(),
          "rank 1 differs from rank 0 in its model: weight [3, 4] Float against weight [2, 4] Float");
    }
  });
}

TEST(DdpErrors, RefusesOtherDifferencesToo) {
  run_ranks(2, [&](Group& group) {
    const bool odd = group.rank() == 1;
    const auto refusal = [&](const auto& make) -> std::string {
      try {
        make();
        return "";
      } catch (const Error& error) {
        return error.what();
      }
    };
    EXPECT_EQ(refusal([&] {
                torch::nn::Linear net(4, 2);
                net->bias.requires_grad_(!odd);
                DistributedDataParallel ddp(net, group);
              }),
              "rank 1 differs from rank 0 in its model: bias [2] Float frozen against bias [2] Float");
    EXPECT_EQ(
        refusal([&] {
          torch::nn::BatchNorm1d net(2);
          if (odd) net->to(torch::kDouble);
          if (odd) net->weight.set_data(net->weight.to(torch::kFloat));
          if (odd) net->bias.set_data(net->bias.to(torch::kFloat));
          DistributedDataParallel ddp(net, group);
        }),
        "rank 1 differs from rank 0 in its model: running_mean [2] Double against running_mean [2] Float");
    EXPECT_EQ(refusal([&] {
                torch::nn::Linear net(4, 2);
                DistributedDataParallel ddp(net, group, {.bucket_bytes = odd ? 64u : 128u});
              }),
              "rank 1 differs from rank 0 in its DdpOptions: bucket_bytes = 64 against bucket_bytes = 128");
    EXPECT_NE(refusal([&] {
                torch::nn::Linear net(4, 2);
                DistributedDataParallel ddp(net, group, {.first_bucket_bytes = odd ? 64u : 128u});
              }).find("in its DdpOptions: first_bucket_bytes = 64 against first_bucket_bytes = 128"),
              std::string::npos);
    EXPECT_NE(refusal([&] {
                torch::nn::Linear net(4, 2);
                DistributedDataParallel ddp(net, group, {.find_unused_parameters = odd});
              }).find("find_unused_parameters = 1 against find_unused_parameters = 0"),
              std::string::npos);
    EXPECT_NE(refusal([&] {
                torch::nn::Linear net(4, 2);
                DistributedDataParallel ddp(net, group, {.seed = odd ? 1u : 2u});
              }).find("rank 1 differs from rank 0 in its settings: seed = 1 against seed = 2"),
              std::string::npos);
  });
}

TEST(DdpErrors, RefusesWhatItCannotTrain) {
  run_ranks(1, [&](Group& group) {
    torch::nn::Linear complex(4, 2);
    complex->to(torch::kComplexFloat);
    EXPECT_THROW(DistributedDataParallel(complex, group), UsageError);
    torch::nn::Linear frozen(4, 2);
    for (Tensor& parameter : frozen->parameters()) parameter.requires_grad_(false);
    EXPECT_THROW(DistributedDataParallel(frozen, group), UsageError);
    torch::nn::Linear net(4, 2);
    DistributedDataParallel ddp(net, group);
    EXPECT_THROW(ddp.set_batch(3, 2), UsageError);
    EXPECT_THROW(ddp.set_batch(0, 0), UsageError);
  });
}

TEST(DdpErrors, APeerThatLeavesIsAnErrorOutOfBackward) {
  run_ranks(2, [&](Group& group) {
    torch::nn::Linear net(64, 64);
    DistributedDataParallel ddp(net, group);
    ddp.backward(ddp.forward(torch::ones({3, 64})).sum());
    if (group.rank() == 1) return;
    EXPECT_THROW(ddp.backward(ddp.forward(torch::ones({3, 64})).sum()), std::exception);
  });
}

}  // namespace
}  // namespace accordion
