// Gradients on a device: they come back as if they had never left host memory, however late its copies are.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "accordion/base/noise_testing.h"
#include "accordion/comm/loopback.h"
#include "accordion/ddp/ddp.h"
#include "accordion/ddp/hook.h"
#include "accordion/ddp/late_device_testing.h"

namespace accordion {
namespace {

const std::vector<TensorInfo> kTensors = {{"a", {{40, 30}}}, {"b", {{50, 40}}}, {"c", {{9}}}};

// Reduces on a rank's device, late; over a communicator that nobody else uses meanwhile.
class LateProcessGroup final : public c10d::ProcessGroup {
 public:
  explicit LateProcessGroup(Communicator& communicator)
      : c10d::ProcessGroup(communicator.rank(), communicator.size()), communicator_(communicator) {}

  const std::string getBackendName() const override { return "late"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions&) override {
    ++calls;
    const at::Tensor sum = tensors[0].cpu();
    communicator_.sum(std::span(sum.data_ptr<float>(), static_cast<std::size_t>(sum.numel())));
    auto work = late_work(tensors, late_stream(tensors[0].device()),
                          [sum](std::vector<at::Tensor>& host) { host[0].copy_(sum); });
    if (leaves_no_memory) refuse_late_memory_once();  // To callbacks.
    return work;
  }

  int calls = 0;
  bool leaves_no_memory = false;

 private:
  Communicator& communicator_;
};

// A rank's model on a device, and the hook that its reducer would call: a bucket of the first two tensors, one of the last.
class Rank {
 public:
  Rank(Group& group, c10::Device device, const EngineOptions& options,
       c10::intrusive_ptr<c10d::ProcessGroup> dense = {}, at::ScalarType type = at::kFloat)
      : rank_(group.rank()),
        engine_(group, kTensors, options),
        parameters_(make(device, type)),
        hook_(engine_, parameters_, nullptr, std::move(dense)) {
    buffers_ = {at::empty({3200}, parameters_[0].options()), at::empty({9}, parameters_[0].options())};
  }

  // Returns when the futures are complete, as backward does.
  std::vector<c10::intrusive_ptr<c10::ivalue::Future>> backward(int number, float last_factor = 1) {
    std::vector<c10::intrusive_ptr<c10::ivalue::Future>> futures;
    for (std::size_t b = 0; b < 2; ++b) {
      const auto count = static_cast<std::size_t>(buffers_[b].numel());
      auto values = noise(count, static_cast<unsigned>(100 * number + 10 * rank_) + static_cast<unsigned>(b));
      for (float& value : values) value *= b == 1 ? last_factor : 1;
      const at::Tensor host =
          at::from_blob(values.data(), {buffers_[b].numel()}).to(buffers_[b].scalar_type()).clone();
      // Two copies, so that the second, on the device, ends when the hook has long been called.
      const at::Tensor gradient = host.to(buffers_[b].device());
      buffers_[b].copy_(gradient, /*non_blocking=*/true);
      const auto first = b == 0 ? parameters_.begin() : parameters_.begin() + 2;
      std::vector<at::Tensor> some(first, b == 0 ? first + 2 : first + 1);
#if TORCH_VERSION_MAJOR >= 2
      c10d::GradBucket bucket(b, 2, buffers_[b], {}, {}, {}, some, {});
#else
      c10d::GradBucket bucket(b, 2, buffers_[b], {}, {}, {}, some);
#endif
      futures.push_back(hook_.runHook(bucket));
    }
    for (auto& future : futures) future->wait();
    return futures;
  }

  std::vector<at::Tensor> step(int number, float last_factor = 1) {
    std::vector<at::Tensor> means;
    for (auto& future : backward(number, last_factor))
      means.push_back(hook_.parseHookResult(future->value()).cpu().clone());
    engine_.settle();  // Another engine is about to use the same communicators.
    return means;
  }

  EpochReport end_epoch() {
    return engine_.end_epoch(0.1);
  }
  Engine& engine() {
    return engine_;
  }

 private:
  static std::vector<at::Tensor> make(c10::Device device, at::ScalarType type) {
    std::vector<at::Tensor> parameters;
    for (const TensorInfo& tensor : kTensors)
      parameters.push_back(at::zeros(tensor.shape.dims, at::TensorOptions().dtype(type)).to(device));
    return parameters;
  }

  int rank_;
  Engine engine_;
  std::vector<at::Tensor> parameters_;
  BucketHook hook_;
  std::vector<at::Tensor> buffers_;
};

bool same(const std::vector<at::Tensor>& left, const std::vector<at::Tensor>& right) {
  for (std::size_t i = 0; i < left.size(); ++i)
    if (!at::equal(left[i], right[i])) return false;
  return left.size() == right.size();
}

TEST(Device, GivesWhatHostMemoryGives) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const char* codec : {"none", "topk:keep=0.05", "powersgd:approx-rank=2"})
      run_loopback_groups(2, [&](Group& group) {
        const EngineOptions options{.control = {.codec = codec}, .seed = 3};
        Rank host(group, at::kCPU, options, {}, type),
            device(group, late_device(group.rank()), options, {}, type);
        for (int step = 0; step < 4; ++step)
          EXPECT_TRUE(same(device.step(step), host.step(step))) << codec << " " << type << " step " << step;
      });
}

TEST(Device, LimitsTheNormOfAStep) {
  run_loopback_groups(2, [&](Group& group) {
    const EngineOptions options{.communication = {.clip_norm = 0.5}};
    Rank host(group, at::kCPU, options), device(group, late_device(group.rank()), options);
    for (int step = 0; step < 2; ++step) EXPECT_TRUE(same(device.step(step), host.step(step)));
  });
}

// Dense buckets stay where they are, and are watched and counted all the same.
TEST(Device, DenseBucketsStayThere) {
  run_loopback_groups(2, [&](Group& group) {
    const EngineOptions options{
        .control = {.controller = "adaqs", .levels = "none;topk:keep=0.2;topk:keep=0.05"}};
    auto dense = c10::make_intrusive<LateProcessGroup>(group.control());
    Rank host(group, at::kCPU, options), device(group, late_device(group.rank()), options, dense);
    for (Rank* rank : {&host, &device}) {
      rank->engine().exchange().set_levels(std::vector<int>(3, 0));
      rank->engine().set_batch(group.rank() == 0 ? 3 : 1, 4);
    }
    for (int step = 0; step < 3; ++step) {
      const auto there = device.step(step), here = host.step(step);
      for (std::size_t b = 0; b < there.size(); ++b) EXPECT_TRUE(at::allclose(there[b], here[b], 1e-5, 1e-7));
    }
    EXPECT_EQ(dense->calls, 6);
    const EpochReport one = host.end_epoch(), other = device.end_epoch();
    EXPECT_EQ(one.stats.traffic.payload_bytes, other.stats.traffic.payload_bytes);
    EXPECT_EQ(one.stats.traffic.paper_floats, other.stats.traffic.paper_floats);
    ASSERT_EQ(one.layers.size(), other.layers.size());
    for (std::size_t i = 0; i < one.layers.size(); ++i) {
      EXPECT_NEAR(other.layers[i].norm / one.layers[i].norm, 1, 1e-5);
      EXPECT_NEAR(*other.layers[i].squares / *one.layers[i].squares, 1, 1e-5);
    }
  });
}

// A checkpoint in mid-epoch has the sums that lie on the device, and a step that has not quite ended.
TEST(Device, StateHasWhatWasWatchedThere) {
  run_loopback_groups(2, [&](Group& group) {
    const EngineOptions options{
        .control = {.controller = "accordion", .mild = "none", .strong = "topk:keep=0.05"}};
    auto dense = c10::make_intrusive<LateProcessGroup>(group.control());
    Rank host(group, at::kCPU, options), device(group, late_device(group.rank()), options, dense),
        resumed(group, late_device(group.rank()), options, dense);
    for (int step = 0; step < 2; ++step) host.step(step);
    device.step(0);
    device.backward(1);
    State state;
    device.engine().save_state(StateWriter(state));
    resumed.engine().load_state(StateReader(state));
    host.step(2);
    resumed.step(2);
    const EpochReport one = host.end_epoch(), other = resumed.end_epoch();
    EXPECT_EQ(other.stats.steps, 3);
    if (group.rank() > 0) return;
    for (std::size_t i = 0; i < one.layers.size(); ++i)
      EXPECT_NEAR(other.layers[i].norm / one.layers[i].norm, 1, 1e-5);
  });
}

// Back and forth between levels: what was not sent is not lost on the way to the device's own means.
TEST(Device, NothingIsLostBetweenLevels) {
  run_loopback_groups(2, [&](Group& group) {
    const EngineOptions options{
        .control = {.controller = "schedule", .mild = "none", .strong = "topk:keep=0.05"}};
    auto dense = c10::make_intrusive<LateProcessGroup>(group.control());
    Rank host(group, at::kCPU, options), device(group, late_device(group.rank()), options, dense);
    for (int step = 0; step < 6; ++step) {
      const int level = step == 1 || step == 2 || step == 4;
      for (Rank* rank : {&host, &device}) rank->engine().exchange().set_levels(std::vector<int>(3, level));
      const auto there = device.step(step), here = host.step(step);
      for (std::size_t b = 0; b < there.size(); ++b)
        EXPECT_TRUE(at::allclose(there[b], here[b], 1e-5, 1e-6)) << "step " << step;
    }
    // Three dense steps, of which the two after a change send the first bucket by way of the host.
    EXPECT_EQ(dense->calls, 1 + 3 + 3);
  });
}

// A bucket that was reduced on the device tells the engine what is not finite; nothing of the step is kept.
TEST(Device, WhatIsNotFiniteOnTheDeviceSpoilsTheStep) {
  run_loopback_groups(2, [&](Group& group) {
    const EngineOptions options{.control = {.codec = "topk:keep=0.05"}};
    auto dense = c10::make_intrusive<LateProcessGroup>(group.control());
    Rank host(group, at::kCPU, options), device(group, late_device(group.rank()), options, dense);
    for (int step = 0; step < 4; ++step) {
      // The last bucket, a bias, goes dense, and is infinite on one rank in step 2.
      const float factor = step == 2 && group.rank() == 1 ? std::numeric_limits<float>::infinity() : 1;
      const auto there = device.step(step, factor), here = host.step(step, factor);
      EXPECT_EQ(device.engine().last_step_kept(), step != 2);
      EXPECT_EQ(host.engine().last_step_kept(), step != 2);
      EXPECT_EQ(there[0].isfinite().all().item<bool>(), step != 2);
      EXPECT_TRUE(step == 2 || at::equal(there[0], here[0])) << step;
    }
    EXPECT_EQ(dense->calls, 4);
  });
}

// Where all buckets stay on the device, their futures are complete before the device has said whether the step is finite.
TEST(Device, WhetherADenseStepWasKeptIsKnownWhenAsked) {
  run_loopback_groups(2, [&](Group& group) {
    auto dense = c10::make_intrusive<LateProcessGroup>(group.control());
    Rank device(group, late_device(group.rank()), {.scaled = true}, dense);
    for (int step = 0; step < 6; ++step) {
      const bool spoilt = step % 2 == 1;
      device.backward(step, spoilt && group.rank() == 1 ? std::numeric_limits<float>::infinity() : 1);
      EXPECT_EQ(device.engine().last_step_kept(), !spoilt) << step;
    }
    EXPECT_EQ(dense->calls, 12);
  });
}

// Of buckets that stay on the device there are no times of parts: steps are compared as wholes, also after levels have changed.
TEST(Device, GuardsWholeSteps) {
  run_loopback_groups(2, [&](Group& group) {
    auto dense = c10::make_intrusive<LateProcessGroup>(group.control());
    Rank device(group, late_device(group.rank()),
                {.control = {.controller = "schedule",
                             .mild = "topk:keep=0.25",
                             .strong = "topk:keep=0.01",
                             .plan = "mild@0-1,strong"},
                 .guard = GuardMode::kFastest},
                dense);
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (int step = 0; step < (epoch == 0 ? 130 : 190); ++step) device.step(200 * epoch + step);
      bool decided = false;
      for (const GuardEvent& event : device.end_epoch().guard) {
        if (event.event != "decide" || !event.predicted_ms) continue;
        decided = true;
        EXPECT_EQ(event.simulated_ms, event.predicted_ms) << "of parts";
      }
      EXPECT_EQ(decided, group.rank() == 0) << "epoch " << epoch;
      EXPECT_GT(dense->calls, 0);
      std::vector<std::int32_t> levels = {device.engine().level(0), -device.engine().level(0)};
      group.control().max(std::span(levels));
      EXPECT_EQ(levels[0], -levels[1]) << "ranks differ";
    }
  });
}

// Who is to say whether a mean is finite may fail; nobody waits for it then.
TEST(Device, AStepWhoseMeanCannotBeLookedAtFails) {
  run_loopback_groups(2, [&](Group& group) {
    auto dense = c10::make_intrusive<LateProcessGroup>(group.control());
    Rank device(group, late_device(group.rank()), {.scaled = true}, dense);
    device.step(0);
    dense->leaves_no_memory = true;
    for (auto& future : device.backward(1)) {
      ASSERT_TRUE(future->hasError());
      EXPECT_NE(future->tryRetrieveErrorMessage().find("no memory on the late device"), std::string::npos);
    }
    EXPECT_FALSE(device.engine().last_step_kept());
  });
}

// Torch 1.13 cannot move a module to such a device, so this one is made there.
struct TwoLayersImpl : torch::nn::Module {
  explicit TwoLayersImpl(c10::Device device) {
    for (const auto& [name, rows, columns] : {std::tuple{"first", 20, 64}, {"second", 64, 5}})
      register_parameter(
          name, at::from_blob(noise(static_cast<std::size_t>(rows * columns), 3).data(), {rows, columns})
                    .clone()
                    .to(device));
  }
  at::Tensor forward(const at::Tensor& input) {
    return input.matmul(parameters()[0]).tanh().matmul(parameters()[1]);
  }
};
TORCH_MODULE(TwoLayers);

std::vector<at::Tensor> train(Group& group, c10::Device device) {
  TwoLayers net(device);
  DistributedDataParallel ddp(
      net, group, {.bucket_bytes = 512, .control = {.codec = "topk:keep=0.05"}, .guard = GuardMode::kNone});
  for (int step = 0; step < 4; ++step) {
    auto values = noise(8 * 20, static_cast<unsigned>(10 * step + group.rank()));
    ddp.backward(ddp.forward(at::from_blob(values.data(), {8, 20}).clone().to(device)).square().mean());
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : net->parameters()) {
      parameter.sub_(parameter.grad(), 0.1);
      parameter.mutable_grad().reset();
    }
  }
  std::vector<at::Tensor> weights;
  for (const at::Tensor& parameter : net->parameters()) weights.push_back(parameter.detach().cpu().clone());
  return weights;
}

// The whole DDP with a module on the device: the same weights as on the host, bit for bit.
TEST(Device, TrainsAModule) {
  std::vector<std::vector<at::Tensor>> here(2), there(2);
  run_loopback_groups(2, [&](Group& group) {
    here[static_cast<std::size_t>(group.rank())] = train(group, at::kCPU);
    there[static_cast<std::size_t>(group.rank())] = train(group, late_device(group.rank()));
  });
  EXPECT_TRUE(same(here[0], here[1]));
  EXPECT_TRUE(same(here[0], there[0]));
  EXPECT_TRUE(same(here[1], there[1]));
}

}  // namespace
}  // namespace accordion
