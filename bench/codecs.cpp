#include "bench/codecs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "accordion/base/error.h"
#include "accordion/base/parallel.h"
#include "accordion/run/shapes.h"
#include "bench/codec_bound.h"
#include "bench/codec_check.h"
#include "bench/codec_group.h"

namespace accordion::bench {
namespace {

// The peer takes ten times as long as we do, and so every third turn.
constexpr int kPeerEvery = 3;

// Rank 0's side of a verified step, to be run again.
struct Work {
  int tensor = 0;
  TensorInfo info;
  RankStep rank;
  std::vector<LocalRound> results;
  std::vector<std::vector<std::byte>> out;  // By round.
  std::vector<float> third, second;         // Streams that only the bound has.
  std::optional<SvdBound> svd;
};

class Timer {
 public:
  Timer(const std::vector<Pass>& passes, std::vector<Work>& work, int threads)
      : work_(work), threads_(threads), passes_(passes), rounds_(static_cast<int>(work[0].results.size())) {}

  // Each over all layers, in milliseconds, as the exchange would: a round is over when every layer's is.
  double encode(int i) {
    return time([&](Work& work) {
      work.rank.compressor->encode(i, step_context(work.tensor, 0, 1), work.rank.feedback(),
                                   work.out[static_cast<std::size_t>(i)]);
    });
  }

  double decode(int i, std::size_t ranks) {
    return time([&](Work& work) {
      const LocalRound& result = work.results[static_cast<std::size_t>(i)];
      // A gather decoded by halves is that of a smaller group; a sum is always of all.
      const int world = result.what.pattern == Pattern::kGather ? static_cast<int>(ranks) : kRanks;
      work.rank.compressor->decode(i, step_context(work.tensor, 0, 1, world), first_messages(result, ranks),
                                   work.rank.mean);
    });
  }

  double encode_bound() {
    if (work_[0].svd) return time([](Work& work) { work.svd->run(work.rank.gradient); });
    double total = 0;
    for (int i = 0; i < rounds_; ++i)
      total += time([&](Work& work) {
        const Streams streams{work.rank.gradient, work.rank.residual, work.third, work.rank.next,
                              work.second};
        const auto bytes = work.results[static_cast<std::size_t>(i)].encoded[0].bytes;
        std::span<std::byte> message = std::span(work.out[static_cast<std::size_t>(i)]).first(bytes);
        // The message is written by a round's last pass.
        for (auto pass = passes_.begin(); pass != passes_.end(); ++pass) {
          if (pass->round != i) continue;
          const bool last = std::next(pass) == passes_.end() || std::next(pass)->round != i;
          stream_encode(*pass, streams, last ? message : std::span<std::byte>{});
        }
      });
    return total;
  }

  double decode_bound() {
    return time([&](Work& work) {
      std::vector<std::span<const std::byte>> payloads;
      for (const LocalRound& result : work.results) payloads.push_back(result.payloads[0]);
      stream_decode(payloads, work.rank.mean);
    });
  }

  int rounds() const { return rounds_; }
  bool gathers(int i) const {
    return work_[0].results[static_cast<std::size_t>(i)].what.pattern == Pattern::kGather;
  }

 private:
  template <class Function>
  double time(Function&& function) {
    const auto begin = std::chrono::steady_clock::now();
    parallel_for(work_.size(), threads_, [&](std::size_t i) { function(work_[i]); });
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }

  std::vector<Work>& work_;
  int threads_;
  std::vector<Pass> passes_;
  int rounds_;
};

constexpr auto kNoGoal = std::nullopt;

template <class Options>
CodecGoal goal(const Options&) {
  return {};
}
CodecGoal goal(const Fp16Options&) {
  return {1.5, 1.0};
}
CodecGoal goal(const Bf16Options&) {
  return {1.5, 1.0};
}
CodecGoal goal(const SignVoteOptions&) {
  return {1.5, 5.0};
}
CodecGoal goal(const SignScaledOptions&) {
  return {1.5, 5.0};
}
CodecGoal goal(const RandomKOptions&) {
  return {1.5, kNoGoal};
}
CodecGoal goal(const ThresholdOptions&) {
  return {1.5, kNoGoal};
}
CodecGoal goal(const TopKOptions& options) {
  return {options.keep <= 0.01 ? 2.0 : 2.5, 10.0};
}
CodecGoal goal(const MsTopKOptions& options) {
  return {options.keep <= 0.01 ? std::optional(2.0) : kNoGoal, 10.0};
}
CodecGoal goal(const DgcOptions&) {
  return {1.8, kNoGoal};
}
CodecGoal goal(const PowerSgdOptions& options) {
  return {options.approx_rank <= 4 ? std::optional(2.0) : kNoGoal, 2.0};
}
CodecGoal goal(const QsgdOptions&) {
  return {2.0, 5.0};
}
CodecGoal goal(const TernGradOptions&) {
  return {2.5, 5.0};
}
CodecGoal goal(const AtomoOptions&) {
  return {1.2, kNoGoal};
}

}  // namespace

CodecGoal goal_of(const CodecOptions& codec) {
  return std::visit([](const auto& options) { return goal(options); }, codec);
}

CodecBench::CodecBench(std::string model, int threads, int repetitions)
    : model_(std::move(model)),
      threads_(threads),
      repetitions_(repetitions),
      tensors_(model_shapes(model_)) {}

std::size_t CodecBench::parameters() const {
  return parameter_count(tensors_);
}

std::vector<std::string> CodecBench::default_codecs() const {
  // A threshold that about one entry in a hundred reaches: of two steps' sum, as most of the first was kept.
  std::vector<float> sample;
  for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
    if (tensors_[tensor].shape.dims.size() < 2) continue;
    std::vector<float> gradient(tensors_[tensor].shape.count()), before(gradient.size());
    gradients_.fill(static_cast<int>(tensor), 0, 0, before);
    gradients_.fill(static_cast<int>(tensor), 0, 1, gradient);
    for (std::size_t i = 0; i < gradient.size(); i += 101)
      sample.push_back(std::abs(before[i] + gradient[i]));
  }
  const auto hundredth = sample.end() - static_cast<std::ptrdiff_t>(sample.size() / 100) - 1;
  std::nth_element(sample.begin(), hundredth, sample.end());
  char threshold[64];
  std::snprintf(threshold, sizeof threshold, "threshold:lambda=%.4f", *hundredth);

  std::vector<std::string> settings = {"fp16",
                                       "fp16:feedback=true",
                                       "bf16",
                                       "bf16:feedback=true",
                                       "sign-vote",
                                       "sign-scaled",
                                       "randomk:keep=0.01",
                                       "randomk:keep=0.1",
                                       threshold,
                                       "topk:keep=0.01",
                                       "topk:keep=0.1",
                                       "mstopk:keep=0.01",
                                       "dgc",
                                       "powersgd:approx-rank=1",
                                       "powersgd:approx-rank=2",
                                       "powersgd:approx-rank=4",
                                       "qsgd:bits=2",
                                       "qsgd:bits=4",
                                       "qsgd:bits=8",
                                       "terngrad"};
  const auto codec_of = [](const std::string& setting) { return setting.substr(0, setting.find(':')); };
  for (const std::string& usual : usual_settings())
    if (std::none_of(settings.begin(), settings.end(),
                     [&](const std::string& each) { return codec_of(each) == codec_of(usual); }))
      settings.push_back(usual);
  return settings;
}

CodecTiming CodecBench::run(const std::string& setting, const CodecPeer* peer) {
  const CodecOptions codec = parse_codec(setting);
  // Largest first: the last pieces that the threads wait for are small.
  std::vector<std::size_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensors_[a].shape.count() > tensors_[b].shape.count();
  });

  std::vector<Work> work(tensors_.size());
  parallel_for(order.size(), threads_, [&](std::size_t i) {
    const TensorInfo& info = tensors_[order[i]];
    const int tensor = static_cast<int>(order[i]);
    GroupStep group = run_group(codec, info, tensor, gradients_);
    if (group.ranks.empty()) return;
    check_step(codec, info, group);
    Work& own = work[i];
    own.tensor = tensor;
    own.info = info;
    own.rank = std::move(group.ranks[0]);
    own.results = std::move(group.results);
    for (int round = 0; round < own.rank.compressor->rounds(); ++round)
      own.out.emplace_back(own.rank.compressor->round(round, step_context(tensor, 0, 1)).max_bytes);
  });
  std::erase_if(work, [](const Work& each) { return !each.rank.compressor; });
  if (work.empty())
    throw UsageError("bench codecs: " + setting + " leaves every tensor of " + model_ + " dense");

  CodecTiming timing;
  timing.codec = setting;
  timing.layers = work.size();
  const LeastWork least = least_work(codec, !work[0].rank.residual.empty());
  timing.whole_step = least.whole_step;
  std::vector<TensorInfo> layers;
  std::vector<float> scales;
  for (Work& each : work) {
    for (const Pass& pass : least.passes) {
      if (pass.reads > 2) each.third.resize(each.info.shape.count());
      if (pass.writes > 1) each.second.resize(each.info.shape.count());
    }
    if (least.decomposes) each.svd.emplace(each.info.shape);
    timing.parameters += each.info.shape.count();
    timing.payload_bytes += each.rank.payload_bytes;
    layers.push_back(each.info);
    scales.push_back(Gradients::scale(each.tensor));
  }
  const bool has_peer = peer && peer->prepare(setting, layers, scales);

  Timer timer(least.passes, work, threads_);
  const auto keep_least = [](double& least, double ms) { least = least == 0 ? ms : std::min(least, ms); };
  for (int repetition = -1; repetition < repetitions_; ++repetition) {
    double encode = 0, decode = 0, decode4 = 0;
    const double encode_bound = timer.encode_bound();
    for (int i = 0; i < timer.rounds(); ++i) {
      encode += timer.encode(i);
      const double one = timer.decode(i, 1);
      decode += one;
      decode4 += timer.gathers(i) ? timer.decode(i, kRanks) : one;
    }
    const double decode_bound = timer.decode_bound();
    for (Work& each : work) each.rank.compressor->commit(false);  // So that each repetition does the same.
    const bool peers_turn = has_peer && repetition % kPeerEvery == 0;
    const double torch = peers_turn ? peer->run() : 0;
    if (repetition < 0) continue;  // Pages and caches are warm from here.
    keep_least(timing.encode_ms, encode);
    keep_least(timing.decode_ms, decode);
    keep_least(timing.decode4_ms, decode4);
    keep_least(timing.encode_bound_ms, encode_bound);
    keep_least(timing.decode_bound_ms, decode_bound);
    if (peers_turn) timing.torch_ms = std::min(timing.torch_ms.value_or(torch), torch);
  }
  return timing;
}

}  // namespace accordion::bench
