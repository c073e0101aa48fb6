#include <mutex>

#include "accordion/ddp/ddp_testing.h"

namespace accordion {
namespace {

TEST(Ddp, GradientsEqualThoseOfOneProcessOnTheUnion) {
  struct Case {
    std::vector<std::int64_t> samples;  // per rank
    DdpOptions options;
  };
  const DdpOptions tiny{.bucket_bytes = kTinyBuckets, .first_bucket_bytes = kTinyBuckets};
  const DdpOptions views{.bucket_bytes = kTinyBuckets, .gradient_as_bucket_view = true};
  const Case cases[] = {{{6}, {}},
                        {{4, 4}, tiny},
                        {{7, 2}, {}},
                        {{5, 1, 3}, tiny},
                        {{3, 0, 4, 1}, views},
                        {{2, 2, 2, 2, 1}, tiny},
                        {{1, 5}, {.bucket_bytes = kTinyBuckets, .find_unused_parameters = true}}};
  for (const Case& c : cases) {
    const auto ranks = static_cast<int>(c.samples.size());
    const std::int64_t total = std::accumulate(c.samples.begin(), c.samples.end(), std::int64_t{0});
    const Problem problem(total, torch::kDouble);
    Net alone = make_net(1, torch::kDouble);
    loss_of(alone(problem.images), problem.labels).backward();
    const auto expected = gradients(*alone);
    std::vector<Net> nets;
    for (int rank = 0; rank < ranks; ++rank) nets.push_back(make_net(1, torch::kDouble));

    run_ranks(ranks, [&](Group& group) {
      const auto r = static_cast<std::size_t>(group.rank());
      DistributedDataParallel ddp(nets[r], group, c.options);
      std::int64_t begin = 0;
      for (std::size_t before = 0; before < r; ++before) begin += c.samples[before];
      const std::int64_t mine = c.samples[r], used = std::max<std::int64_t>(mine, 1);
      begin = std::min(begin, total - used);
      // Buckets are rebuilt after the first step; nothing may change.
      for (int step = 0; step < 3; ++step) {
        ddp.zero_grad();
        if (step == 1)
          ddp.set_batch(mine);
        else
          ddp.set_batch(mine, total);
        ddp.backward(loss_of(ddp.forward(problem.images.narrow(0, begin, used)),
                             problem.labels.narrow(0, begin, used)));
        EXPECT_LT(largest_difference(gradients(*nets[r]), expected), 1e-12)
            << "ranks " << ranks << " step " << step;
      }
    });
  }
}

TEST(Ddp, IsGuardedUnlessToldOtherwise) {
  std::vector<Net> nets = {make_net(1, torch::kFloat), make_net(1, torch::kFloat)};
  run_ranks(2, [&](Group& group) {
    Net net = nets[static_cast<std::size_t>(group.rank())];
    const auto guard = [&](const DdpOptions& options) {
      return DistributedDataParallel(net, group, options).engine().options().guard;
    };
    EXPECT_EQ(guard({.control = {.codec = "topk:keep=0.1"}}), GuardMode::kHarmless);
    EXPECT_EQ(guard({.control = {.codec = "topk:keep=0.1"}, .guard = GuardMode::kFastest}),
              GuardMode::kFastest);
    EXPECT_EQ(guard({.control = {.codec = "topk:keep=0.1"}, .guard = GuardMode::kNone}), GuardMode::kNone);
    EXPECT_EQ(guard({.control = {.codec = "topk:keep=0.1", .parity = "paper"}}), GuardMode::kNone);
  });
}

TEST(Ddp, AccumulatesUnderNoSyncAndSendsOnce) {
  const Problem problem(12, torch::kDouble);
  Net alone = make_net(1, torch::kDouble);
  loss_of(alone(problem.images), problem.labels).backward();
  const auto expected = gradients(*alone);
  std::vector<Net> nets = {make_net(1, torch::kDouble), make_net(1, torch::kDouble)};
  run_ranks(2, [&](Group& group) {
    Net net = nets[static_cast<std::size_t>(group.rank())];
    DistributedDataParallel ddp(net, group, {.gradient_as_bucket_view = true});
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      for (int micro = 0; micro < 3; ++micro) {
        const std::int64_t begin = group.rank() * 6 + micro * 2;
        const auto loss = [&] {
          return loss_of(ddp.forward(problem.images.narrow(0, begin, 2)),
                         problem.labels.narrow(0, begin, 2)) /
                 3;
        };
        if (micro < 2) {
          const auto quiet = ddp.no_sync();
          ddp.backward(loss());
        } else {
          ddp.backward(loss());
        }
      }
      EXPECT_LT(largest_difference(gradients(*net), expected), 1e-12) << step;
    }
    EXPECT_EQ(ddp.end_epoch(0.1).stats.steps, 3);
  });
}

TEST(Ddp, RanksStartFromRankZerosWeightsAndBuffers) {
  std::vector<torch::nn::Sequential> nets;
  for (std::uint64_t seed : {1, 2, 3}) {
    torch::manual_seed(seed);
    nets.emplace_back(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3));
    nets.back()->buffers()[0].fill_(static_cast<double>(seed));
  }
  run_ranks(3, [&](Group& group) {
    DistributedDataParallel ddp(nets[static_cast<std::size_t>(group.rank())], group);
  });
  for (int rank : {1, 2}) {
    const auto r = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < nets[0]->parameters().size(); ++i)
      EXPECT_TRUE(torch::equal(nets[0]->parameters()[i], nets[r]->parameters()[i]));
    for (std::size_t i = 0; i < nets[0]->buffers().size(); ++i)
      EXPECT_TRUE(torch::equal(nets[0]->buffers()[i], nets[r]->buffers()[i]));
  }
}

struct ScalesImpl : torch::nn::Module {
  explicit ScalesImpl(const Tensor& first) {
    scales = register_parameter("scales", first.clone());
    strided = register_parameter("strided", first.clone().t());
    tied = register_parameter("tied", scales);
  }
  Tensor forward(const Tensor& x) {
    return (scales * x + strided.t() * x + tied * x).to(torch::kFloat).sum();
  }
  Tensor scales, strided, tied;
};
TORCH_MODULE(Scales);

// Whatever their type and strides, and each once, however many names it has.
TEST(Ddp, TakesParametersAsTheyAre) {
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16}) {
    std::vector<Scales> nets;
    for (int rank = 0; rank < 2; ++rank) nets.emplace_back(torch::arange(6).reshape({2, 3}).to(type) + rank);
    run_ranks(2, [&](Group& group) {
      Scales net = nets[static_cast<std::size_t>(group.rank())];
      DistributedDataParallel ddp(net, group);
      EXPECT_EQ(ddp.parameters().size(), 2u);
      const Tensor start = torch::arange(6).reshape({2, 3}).to(type);
      EXPECT_TRUE(torch::equal(net->scales, start)) << type;
      EXPECT_TRUE(torch::equal(net->strided.t(), start)) << type;
      const Tensor input = start * (group.rank() == 0 ? 1 : 3);
      ddp.backward(ddp.forward(input));
      EXPECT_TRUE(torch::equal(net->strided.grad().t(), start * 2)) << type << net->strided.grad();
      EXPECT_TRUE(torch::equal(net->scales.grad(), start * 4)) << type << net->scales.grad();
    });
  }
}

// Trains for a few steps and returns rank 0's parameters and norms.
std::pair<std::vector<Tensor>, std::vector<double>> train(DdpOptions options, int ranks) {
  const Problem problem(8 * ranks, torch::kFloat);
  std::vector<Net> nets;
  for (int rank = 0; rank < ranks; ++rank) nets.push_back(make_net(5, torch::kFloat));
  std::vector<double> norms;
  options.record_norms = true;
  run_ranks(ranks, [&](Group& group) {
    Net net = nets[static_cast<std::size_t>(group.rank())];
    DistributedDataParallel ddp(net, group, options);
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    for (int step = 0; step < 6; ++step) {
      ddp.zero_grad();
      const std::int64_t begin = 8 * group.rank();
      ddp.backward(
          loss_of(ddp.forward(problem.images.narrow(0, begin, 8)), problem.labels.narrow(0, begin, 8)));
      optimizer.step();
    }
    const EpochReport report = ddp.end_epoch(0.1);  // Its layers are rank 0's.
    for (const LayerRecord& layer : report.layers) norms.push_back(layer.norm);
  });
  for (int rank = 1; rank < ranks; ++rank)
    for (std::size_t i = 0; i < nets[0]->parameters().size(); ++i)
      EXPECT_TRUE(
          torch::equal(nets[0]->parameters()[i], nets[static_cast<std::size_t>(rank)]->parameters()[i]))
          << "replicas differ";
  return {nets[0]->parameters(), norms};
}

TEST(Ddp, IsBitIdenticalFromRunToRunAndWhateverTheBuckets) {
  const auto [first, norms] = train({}, 4);
  EXPECT_EQ(norms.size(), first.size());
  for (const DdpOptions& options :
       {DdpOptions{}, DdpOptions{.bucket_bytes = kTinyBuckets, .first_bucket_bytes = 64},
        DdpOptions{.bucket_bytes = kTinyBuckets, .gradient_as_bucket_view = true}}) {
    const auto [again, norms_again] = train(options, 4);
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(torch::equal(first[i], again[i])) << i;
    EXPECT_EQ(norms, norms_again) << "state belongs to parameters, not to buckets";
  }
}

// The walk with a codec in it: replicas stay equal, and a step with a NaN on one rank is NaN on all and
// leaves no trace.
TEST(Ddp, ExchangesCompressedGradients) {
  const Problem problem(16, torch::kFloat);
  std::vector<Net> nets = {make_net(5, torch::kFloat), make_net(5, torch::kFloat)};
  run_ranks(2, [&](Group& group) {
    Net net = nets[static_cast<std::size_t>(group.rank())];
    DistributedDataParallel ddp(net, group,
                                {.bucket_bytes = kTinyBuckets,
                                 .control = {.controller = "schedule",
                                             .levels = "topk:keep=0.1;powersgd:approx-rank=2",
                                             .plan = "0@0-1,1"},
                                 .guard = GuardMode::kNone,
                                 .routing = {.published = true}});
    EpochStats stats;
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    for (int step = 0; step < 6; ++step) {
      if (step == 4) stats = ddp.end_epoch(0.1).stats;
      ddp.zero_grad();
      Tensor loss = loss_of(ddp.forward(problem.images.narrow(0, 8 * group.rank(), 8)),
                            problem.labels.narrow(0, 8 * group.rank(), 8));
      if (step == 2 && group.rank() == 1) loss = loss * std::numeric_limits<float>::quiet_NaN();
      ddp.backward(loss);
      for (const Tensor& parameter : net->parameters())
        EXPECT_EQ(parameter.grad().isnan().any().item<bool>(), step == 2) << step;
      if (step != 2) optimizer.step();
    }
    EXPECT_EQ(stats.steps, 4);
    EXPECT_EQ(ddp.end_epoch(0.1).stats.steps, 2);
    EXPECT_EQ(stats.dropped_steps, 1);
  });
  for (std::size_t i = 0; i < nets[0]->parameters().size(); ++i)
    EXPECT_TRUE(torch::equal(nets[0]->parameters()[i], nets[1]->parameters()[i]));
}

// One step of a net on half a problem a rank; rank 1's loss is multiplied by `factor`.
std::vector<Tensor> one_step(Group& group, const Problem& problem, const DdpOptions& options, double factor) {
  static std::mutex generator;
  Net net{nullptr};
  {
    std::lock_guard lock(generator);
    net = make_net(5, torch::kFloat);
  }
  DistributedDataParallel ddp(net, group, options);
  Tensor loss = loss_of(ddp.forward(problem.images.narrow(0, 8 * group.rank(), 8)),
                        problem.labels.narrow(0, 8 * group.rank(), 8));
  ddp.backward(group.rank() == 1 ? loss * factor : loss);
  return gradients(*net);
}

// With and without a codec.
TEST(Ddp, DoesWithAStepThatIsNotFiniteWhatItIsTold) {
  const Problem problem(16, torch::kFloat);
  for (const char* codec : {"none", "topk:keep=0.1"})
    run_ranks(2, [&](Group& group) {
      DdpOptions options{
          .bucket_bytes = kTinyBuckets, .control = {.codec = codec}, .guard = GuardMode::kNone};
      const double nan = std::numeric_limits<double>::quiet_NaN();
      for (const Tensor& gradient : one_step(group, problem, options, nan))
        EXPECT_TRUE(gradient.isnan().all().item<bool>()) << codec;
      options.communication.on_non_finite = NonFinite::kSkip;
      for (const Tensor& gradient : one_step(group, problem, options, nan))
        EXPECT_EQ(gradient.abs().max().item<double>(), 0) << codec;
      options.communication.on_non_finite = NonFinite::kThrow;
      EXPECT_THROW(one_step(group, problem, options, nan), std::exception) << codec;
      EXPECT_NO_THROW(one_step(group, problem, options, 1)) << codec;
    });
}

// Codecs draw from the seed.
TEST(Ddp, OptionsReachTheEngine) {
  const Problem problem(16, torch::kFloat);
  run_ranks(2, [&](Group& group) {
    DdpOptions options{.control = {.codec = "randomk:keep=0.1,feedback=false"},
                       .guard = GuardMode::kNone,
                       .routing = {.published = true}};
    const auto first = one_step(group, problem, options, 1);
    EXPECT_EQ(largest_difference(one_step(group, problem, options, 1), first), 0);
    options.seed = 1;
    EXPECT_GT(largest_difference(one_step(group, problem, options, 1), first), 0);

    torch::nn::Linear net(4, 2);
    DdpOptions windows{.control = {.controller = "accordion",
                                   .mild = "topk:keep=0.5",
                                   .strong = "topk:keep=0.1",
                                   .window = 1},
                       .guard = GuardMode::kNone,
                       .learning_rate = 0.1,
                       .routing = {.published = true}};
    DistributedDataParallel ddp(net, group, windows);
    EXPECT_TRUE(ddp.engine().compresses(0)) << "small as it is";
    ddp.backward(ddp.forward(torch::ones({3, 4})).sum());
    ddp.end_step(0.01);
    const EpochReport report = ddp.end_epoch(0.01);
    if (group.rank() > 0) return;
    EXPECT_EQ(report.windows.at(0).lr, 0.1) << "the rate of the first step";
  });
}

TEST(Ddp, DeferringChangesNothingAndClippingTheNormBeforeItIsSent) {
  const Problem problem(16, torch::kFloat);
  run_ranks(2, [&](Group& group) {
    DdpOptions options{.bucket_bytes = kTinyBuckets};
    const auto plain = one_step(group, problem, options, 1);
    options.communication.deferred = true;
    EXPECT_EQ(largest_difference(one_step(group, problem, options, 1), plain), 0);

    // Rank 1's gradient is cut to the limit however large it is; rank 0's is below it.
    options.communication.clip_norm = 100;
    EXPECT_EQ(largest_difference(one_step(group, problem, options, 1), plain), 0);
    const auto cut = one_step(group, problem, options, 1e6),
               cut_more = one_step(group, problem, options, 1e7);
    EXPECT_LT(largest_difference(cut, cut_more), 1e-4);
    double squares = 0;
    for (const Tensor& gradient : cut) squares += gradient.square().sum().item<double>();
    EXPECT_NEAR(std::sqrt(squares), 50, 1) << "half of the limit, as rank 0 adds little";

    // DGC's own limit is divided by the square root of the ranks.
    DdpOptions dgc{.control = {.codec = "dgc:keep=1,clip=100,momentum=0"}, .guard = GuardMode::kNone};
    squares = 0;
    for (const Tensor& gradient : one_step(group, problem, dgc, 1e6))
      squares += gradient.square().sum().item<double>();
    EXPECT_NEAR(std::sqrt(squares), 50 / std::sqrt(2), 1);
  });
}

TEST(Ddp, ForwardWithoutGradientsIsLeftAlone) {
  run_ranks(2, [&](Group& group) {
    torch::nn::Linear net(4, 2);
    DistributedDataParallel ddp(net, group);
    {
      torch::NoGradGuard no_grad;
      if (group.rank() == 0) ddp.forward(torch::ones({3, 4}));  // Ranks need not evaluate alike.
    }
    ddp.backward(ddp.forward(torch::ones({3, 4})).sum());
    const EpochReport report = ddp.end_epoch(0.1);
    EXPECT_EQ(report.stats.steps, 1);
    EXPECT_GT(report.overlap.busy_seconds, 0);
  });
}

}  // namespace
}  // namespace accordion
