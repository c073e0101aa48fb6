#include "bench/codec_trial.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>

#include "accordion/base/parallel.h"
#include "accordion/compress/local_group.h"
#include "accordion/engine/step_costs.h"
#include "accordion/exchange/frame.h"

namespace accordion::bench {
namespace {

constexpr int kLateEpoch = 1000;  // When a codec that starts gently has come to what it is.

Context context_of(int tensor, int rank, int world, int step) {
  return {.seed = 1,
          .step = static_cast<std::uint64_t>(step),
          .epoch = kLateEpoch,
          .tensor = tensor,
          .rank = rank,
          .world = world};
}

}  // namespace

// Rank 0's side of a whole step, to be run again, and the codec as the real group has it, which knows its messages.
struct CodecTrial::LayerTrial {
  struct Rank {
    std::unique_ptr<Compressor> codec;
    std::vector<float> gradient, residual, next, mean;

    Feedback feedback() { return {gradient, residual, next}; }
  };

  int tensor = 0;
  std::unique_ptr<Compressor> sender;
  Rank own;
  std::vector<LocalRound> results;
  std::vector<std::vector<std::byte>> out;
};

CodecTrial::CodecTrial(const CodecOptions& codec, const std::vector<TensorInfo>& tensors,
                       const RealGradients& gradients, int ranks, int threads)
    : ranks_(ranks), threads_(threads) {
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const Shape& shape = tensors[tensor].shape;
    const int id = static_cast<int>(tensor);
    auto layer = std::make_unique<LayerTrial>();
    layer->tensor = id;
    layer->sender = make_compressor(codec, shape, ranks, Routing{});
    if (!layer->sender) {
      dense_bytes_ += static_cast<double>(shape.count() * sizeof(float));
      continue;
    }
    const Round first = layer->sender->round(0, context_of(id, 0, ranks, 0));
    world_ = first.pattern == Pattern::kGather ? kMostMessages : std::min(ranks, kMostMessages);

    std::vector<LayerTrial::Rank> group(static_cast<std::size_t>(world_));
    for (LayerTrial::Rank& rank : group) {
      rank.codec = make_compressor(codec, shape, world_, {.min_count = 0, .min_rate = 0});
      rank.mean.resize(shape.count());
      if (!rank.codec->wants_feedback()) continue;
      rank.residual.resize(shape.count());
      rank.next.resize(shape.count());
    }
    // The second step has a residual.
    for (int step = 0; step < 2; ++step) {
      std::vector<LocalRank> locals;
      for (int r = 0; r < world_; ++r) {
        LayerTrial::Rank& rank = group[static_cast<std::size_t>(r)];
        if (step > 0) {
          rank.codec->commit(true);
          rank.residual.swap(rank.next);
        }
        rank.gradient = gradients[static_cast<std::size_t>(r + step) % gradients.size()][tensor];
        locals.push_back({*rank.codec, context_of(id, r, world_, step), rank.feedback(), rank.mean});
      }
      layer->results = run_step(locals);
    }
    layer->own = std::move(group[0]);
    for (int i = 0; i < layer->own.codec->rounds(); ++i)
      layer->out.emplace_back(layer->own.codec->round(i, context_of(id, 0, world_, 1)).max_bytes);
    rounds_ = std::max(rounds_, layer->own.codec->rounds());
    layers_.push_back(std::move(layer));
  }
}

CodecTrial::~CodecTrial() = default;

bool CodecTrial::gathers(int round) const {
  // Chunks fall with the number of ranks: decoding them all costs the same.
  const auto& results = layers_[0]->results;
  return results[0].what.pattern == Pattern::kGather && static_cast<std::size_t>(round) < results.size() &&
         results[static_cast<std::size_t>(round)].what.pattern == Pattern::kGather;
}

template <class Function>
double CodecTrial::time(Function&& function) {
  const auto begin = std::chrono::steady_clock::now();
  parallel_for(layers_.size(), threads_, [&](std::size_t i) { function(*layers_[i]); });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double CodecTrial::encode(int round) {
  return time([&](LayerTrial& layer) {
    if (layer.own.codec->rounds() <= round) return;
    const auto i = static_cast<std::size_t>(round);
    Context context = context_of(layer.tensor, 0, world_, 1);
    const int pieces = layer.results[i].what.pattern == Pattern::kScatter ? world_ : 1;
    for (context.piece = 0; context.piece < pieces; ++context.piece)
      layer.own.codec->encode(
          round, context, layer.own.feedback(),
          std::span(layer.out[i]).first(layer.own.codec->round(round, context).max_bytes));
  });
}

double CodecTrial::decode(int round, int messages) {
  return time([&](LayerTrial& layer) {
    if (layer.own.codec->rounds() <= round) return;
    std::vector<Message> received = layer.results[static_cast<std::size_t>(round)].received(0);
    const int world = gathers(round) ? messages : world_;
    if (gathers(round)) received.resize(static_cast<std::size_t>(messages));
    layer.own.codec->decode(round, context_of(layer.tensor, 0, world, 1), received, layer.own.mean);
  });
}

void CodecTrial::again() {
  for (auto& layer : layers_) layer->own.codec->commit(false);
}

std::vector<perf::RoundProfile> CodecTrial::messages(std::size_t buckets) const {
  std::vector<perf::RoundProfile> rounds;
  if (dense_bytes_ > 0) rounds.push_back({perf::Collective::kSum, dense_bytes_, false, 0, 0});
  for (int i = 0; i < rounds_; ++i) {
    std::map<perf::Collective, double> bytes;
    bool sizes = false, split = false;
    for (const auto& layer : layers_) {
      if (layer->sender->rounds() <= i) continue;
      Context context = context_of(layer->tensor, 0, ranks_, 1);
      const Round what = layer->sender->round(i, context);
      const auto& result = layer->results[static_cast<std::size_t>(i)];
      double& sent = bytes[collective_of(what.pattern)];
      if (what.pattern == Pattern::kScatter) {
        for (context.piece = 1; context.piece < ranks_; ++context.piece)
          sent += static_cast<double>(frame_bytes(layer->sender->round(i, context).max_bytes));
      } else if (what.pattern == Pattern::kGather) {
        split = split || i > 0;
        sizes = sizes || !what.fixed;
        // What varies is as long as it was.
        sent += static_cast<double>(frame_bytes(what.fixed ? what.max_bytes : result.encoded[0].bytes));
      } else {
        sent += static_cast<double>(what.max_bytes);
      }
    }
    if (sizes)
      rounds.push_back(
          {perf::Collective::kGather, static_cast<double>(buckets * sizeof(std::uint64_t)), false, 0, 0});
    for (const auto& [kind, total] : bytes)
      rounds.push_back({kind, total, split && kind == perf::Collective::kGather, {}, {}});
  }
  return rounds;
}

double CodecTrial::extra_bytes() const {
  double bytes = 0;
  for (const auto& layer : layers_) {
    bytes += static_cast<double>((layer->own.residual.size() + layer->own.next.size()) * sizeof(float));
    State state;
    layer->own.codec->save_state(StateWriter(state));
    for (const auto& [name, value] : state)
      bytes += std::visit(
          [](const auto& values) { return static_cast<double>(values.size() * sizeof values[0]); }, value);
  }
  return bytes;
}

}  // namespace accordion::bench
