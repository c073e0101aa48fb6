#include "bench/calibrate_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>

#include "accordion/base/median.h"
#include "accordion/data/dataset.h"
#include "accordion/ddp/ddp.h"
#include "accordion/models/made_up.h"
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"
#include "bench/calibrate_device.h"
#include "bench/digits.h"

namespace accordion::bench {
namespace {

using CalibrationClock = std::chrono::steady_clock;

constexpr int kWarmUp = 2, kFewest = 5, kMost = 60;
constexpr double kKeptBytes = 64 << 20;  // Of gradients.
// What stands for the exchange's work where backward is to feel it.
const char* const kBurden = "topk:keep=0.01";

// What a thread does beside backward, as the exchange's threads would: until backward is over, or all that there is of it.
using Burden = std::function<void(const std::atomic<bool>& over)>;

class Beside {
 public:
  explicit Beside(const Burden& burden)
      : thread_([this, &burden] {
          try {
            burden(over_);
          } catch (...) {
            failure_ = std::current_exception();
          }
        }) {}
  ~Beside() { stop(); }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  // Throws what the burden did.
  void wait() {
    stop();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<bool> over_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

double pass(CodecTrial& trial) {
  double seconds = 0;
  for (int i = 0; i < trial.rounds(); ++i) seconds += trial.encode(i) + trial.decode(i);
  trial.again();
  return seconds;
}

// Seconds since the beginning of a step, of the slowest rank.
struct StepTimes {
  double forward = 0, backward = 0, end = 0;
  std::vector<double> ready;  // By tensor.
};

std::shared_ptr<Network> model_on(c10::Device device, const std::string& setting, const InputShape& input) {
  auto model = make_model(setting, input);
  if (!device.is_cpu()) model->to(device);
  return model;
}

class Trainee {
 public:
  Trainee(Communicator& control, const ModelCase& chosen, c10::Device device)
      : control_(control),
        input_(dataset_facts(chosen.data).input),
        model_(model_on(device, chosen.model, input_)),
        done_(device),
        optimizer_(model_->parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9)) {
    for (const auto& [name, parameter] : exchanged_parameters(*model_)) {
      const std::size_t i = parameters_.size();
      parameters_.push_back(parameter);
      parameters_.back().register_hook(
          [this, i](const torch::Tensor&) { done_.then([this, i] { ready_[i] = now(); }); });
    }
    ready_.resize(parameters_.size());
    const double draws = kKeptBytes / (sizeof(float) * static_cast<double>(parameter_count(tensors())));
    // Ranks draw samples of their own.
    torch::manual_seed(100 + static_cast<std::uint64_t>(control_.rank()));
    for (int i = 0; i < static_cast<int>(std::clamp(draws, 2.0, 4.0)); ++i) {
      MadeUpBatch& batch = batches_.emplace_back(made_up(input_, chosen.batch, kPositions));
      batch.input = batch.input.to(device);
      batch.targets = batch.targets.to(device);
    }
  }

  std::vector<TensorInfo> tensors() const { return exchanged_tensors(*model_); }
  std::size_t batches() const { return batches_.size(); }

  StepTimes step(std::size_t number, const Burden& burden = {}) {
    const MadeUpBatch& batch = batches_[number % batches_.size()];
    std::int8_t here = 0;
    control_.sum(std::span(&here, 1));
    begin_ = CalibrationClock::now();
    optimizer_.zero_grad();
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(model_->forward(batch.input), batch.targets);
    StepTimes times;
    done_.then([&] { times.forward = now(); });
    {
      std::optional<Beside> beside;
      if (burden) beside.emplace(burden);
      loss.backward();
      done_.then([&] { times.backward = now(); });
      done_.wait();
      if (beside) beside->wait();
    }
    const double before = now();
    optimizer_.step();
    done_.then([&] { times.end = times.backward + now() - before; });
    done_.wait();
    times.ready = ready_;
    return slowest(std::move(times));
  }

  std::vector<std::vector<float>> gradient() const {
    std::vector<std::vector<float>> values;
    for (const torch::Tensor& parameter : parameters_) {
      const torch::Tensor dense = parameter.grad().cpu().contiguous();
      values.emplace_back(dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel());
    }
    return values;
  }

  // As the reducer cuts them once it has seen in which order gradients come.
  std::vector<perf::BucketProfile> buckets(const std::vector<double>& ready, double forward,
                                           double backward) const {
    std::vector<std::int32_t> order(parameters_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return ready[static_cast<std::size_t>(a)] < ready[static_cast<std::size_t>(b)];
    });
    std::vector<torch::Tensor> ordered;
    for (const std::int32_t i : order) ordered.push_back(parameters_[static_cast<std::size_t>(i)]);
    std::vector<perf::BucketProfile> buckets;
    double before = 0;
    for (const std::vector<std::size_t>& indices : cut_buckets(ordered, DdpOptions{}).buckets) {
      perf::BucketProfile& bucket = buckets.emplace_back();
      for (const std::size_t index : indices) {
        bucket.elements += ordered[index].numel();
        before = std::max(before, ready[static_cast<std::size_t>(order[index])] - forward);
      }
      bucket.ready_ms = std::min(digits(1e3 * before), digits(1e3 * (backward - forward)));
    }
    return buckets;
  }

 private:
  double now() const { return std::chrono::duration<double>(CalibrationClock::now() - begin_).count(); }

  StepTimes slowest(StepTimes times) {
    std::vector<double> all = times.ready;
    all.insert(all.end(), {times.forward, times.backward, times.end});
    control_.max(std::span(all));
    times.end = all.back(), all.pop_back();
    times.backward = all.back(), all.pop_back();
    times.forward = all.back(), all.pop_back();
    times.ready = std::move(all);
    return times;
  }

  Communicator& control_;
  InputShape input_;
  std::shared_ptr<Network> model_;
  DoneOnDevice done_;
  torch::optim::SGD optimizer_;
  std::vector<torch::Tensor> parameters_;
  std::vector<MadeUpBatch> batches_;
  std::vector<double> ready_;
  CalibrationClock::time_point begin_;
};

template <class Get>
double middle(const std::vector<StepTimes>& steps, Get&& get) {
  std::vector<double> values;
  for (const StepTimes& step : steps) values.push_back(get(step));
  return median_of(values).value;
}

double backward_seconds(const std::vector<StepTimes>& steps) {
  return middle(steps, [](const StepTimes& step) { return step.backward - step.forward; });
}

// Steps with nothing beside them and with a burden, in turn, so that a machine that slows down slows both.
struct Compared {
  std::vector<StepTimes> alone, burdened;

  double later() const { return backward_seconds(burdened) - backward_seconds(alone); }
};

Compared compare(Trainee& trainee, const Burden& burden, double seconds, double pair_seconds) {
  Compared compared;
  const int pairs = static_cast<int>(std::clamp(seconds / pair_seconds, double{kFewest}, double{kMost}));
  for (int i = 0; i < pairs; ++i) {
    compared.alone.push_back(trainee.step(static_cast<std::size_t>(i)));
    if (burden) compared.burdened.push_back(trainee.step(static_cast<std::size_t>(i), burden));
  }
  return compared;
}

// How much later backward ends for each second of encoding and decoding. These seconds are as codecs are timed, on all
// ranks at once; so where ranks outnumber cores, both sides know.
double stretch_of(const Compared& compared, double taken) {
  return taken > 0 ? std::clamp(compared.later() / taken, 0.0, 100.0) : 0;
}

}  // namespace

MeasuredModel measure_model(Communicator& control, const ModelCase& chosen,
                            const ModelCalibration& calibration) {
  check_window(chosen.model, kPositions);
  torch::set_num_threads(calibration.threads);
  torch::manual_seed(1);
  Trainee trainee(control, chosen, calibration.device);
  MeasuredModel measured{.profile = {}, .tensors = trainee.tensors(), .gradients = {}};
  double warm = 0;
  for (std::size_t i = 0; i < std::max<std::size_t>(kWarmUp, trainee.batches()); ++i) {
    warm = trainee.step(i).end;
    if (i < trainee.batches()) measured.gradients.push_back(trainee.gradient());
  }
  CodecTrial trial(parse_codec(kBurden), measured.tensors, measured.gradients, control.size(), 1);
  std::vector<double> pass_seconds;
  for (int i = 0; i < 11 && trial.rounds() > 0; ++i) {
    std::int8_t here = 0;
    control.sum(std::span(&here, 1));
    double seconds = pass(trial);
    control.max(std::span(&seconds, 1));
    pass_seconds.push_back(seconds);
  }

  std::vector<double> passes;  // Beside each step.
  Burden burden;
  if (trial.rounds() > 0)
    burden = [&](const std::atomic<bool>& over) {
      double& done = passes.emplace_back();
      while (pass(trial), !over) ++done;
    };
  const Compared compared = compare(trainee, burden, calibration.seconds, 3 * warm);
  const std::vector<StepTimes>& alone = compared.alone;
  double taken = 0;
  if (burden) {
    taken = median_of(passes).value;
    control.sum(std::span(&taken, 1));
    taken *= median_of(pass_seconds).value / control.size();
  }

  const double forward = middle(alone, [](const StepTimes& step) { return step.forward; });
  const double backward = middle(alone, [](const StepTimes& step) { return step.backward; });
  const double end = middle(alone, [](const StepTimes& step) { return step.end; });
  std::vector<double> ready;
  for (std::size_t i = 0; i < measured.tensors.size(); ++i)
    ready.push_back(middle(alone, [&](const StepTimes& step) { return step.ready[i]; }));
  perf::ModelProfile& profile = measured.profile;
  profile.model = chosen.model;
  profile.batch = chosen.batch;
  profile.parameters = static_cast<std::int64_t>(parameter_count(measured.tensors));
  profile.backward_ms = digits(1e3 * (backward - forward));
  profile.rest_ms = digits(1e3 * (forward + end - backward));
  profile.stretch = digits(stretch_of(compared, taken), 3);
  profile.buckets = trainee.buckets(ready, forward, backward);
  return measured;
}

SumsBesideBackward measure_sums_beside_backward(Group& group, const ModelCase& chosen, const perf::Cost& sums,
                                                const ModelCalibration& calibration) {
  // Smaller ones would be mostly what a message takes, whatever its size.
  constexpr std::size_t kSmallest = 64 << 10, kLargest = 16 << 20;
  constexpr int kMostSums = 32;
  torch::set_num_threads(calibration.threads);
  torch::manual_seed(1);
  Trainee trainee(group.control(), chosen, calibration.device);
  StepTimes warm;
  for (std::size_t i = 0; i < std::max<std::size_t>(kWarmUp, trainee.batches()); ++i) warm = trainee.step(i);
  // As many as half of backward has room for at the pace of the network alone: they take longer beside it.
  const double room = (warm.backward - warm.forward) / 2;
  std::size_t bytes = kSmallest;
  while (bytes < kLargest && sums.seconds(2.0 * static_cast<double>(bytes)) < room) bytes *= 2;
  int count =
      static_cast<int>(std::clamp(room / sums.seconds(static_cast<double>(bytes)), 1.0, double{kMostSums}));
  // As rank 0 has it: what others know of the network may differ in the last digit.
  std::array<double, 2> agreed = {static_cast<double>(bytes), static_cast<double>(count)};
  if (group.rank() > 0) agreed = {};
  group.control().max(std::span<double>(agreed));
  bytes = static_cast<std::size_t>(agreed[0]), count = static_cast<int>(agreed[1]);

  std::vector<float> values(bytes / sizeof(float));
  const auto timed = [&] {
    const auto begin = CalibrationClock::now();
    for (int i = 0; i < count; ++i) group.gradients().sum(std::span(values));
    return std::chrono::duration<double>(CalibrationClock::now() - begin).count();
  };
  std::vector<double> by_themselves, beside;
  for (int i = 0; i < 2 * kFewest; ++i) by_themselves.push_back(timed());
  const Burden burden = [&](const std::atomic<bool>&) { beside.push_back(timed()); };
  const Compared compared = compare(trainee, burden, calibration.seconds, 2 * warm.end + room);
  for (int i = 0; i < 2 * kFewest; ++i) by_themselves.push_back(timed());

  // Whoever begins last waits for nobody.
  double alone = median_of(by_themselves).value, together = -median_of(beside).value;
  group.control().max(std::span(&alone, 1));
  group.control().max(std::span(&together, 1));
  together = -together;
  const double backward = backward_seconds(compared.burdened);
  // What backward leaves over goes at the pace of the network alone. Where that would be most of it, the rest is lost in noise.
  const bool fits = alone < backward;
  const double after = fits ? std::max(0.0, together - backward) : 0;
  const double within = std::max(alone - after, 0.01 * alone);
  const double share = fits ? within / alone : std::min(1.0, backward / together);
  const double sent =
      count * perf::wire_bytes(perf::Collective::kSum, static_cast<double>(bytes), group.size());
  return {.delay = std::max(0.0, compared.later() / (sent * share)),
          .crowding = std::clamp((together - after) / within, 1.0, 100.0)};
}

}  // namespace accordion::bench
