#include "accordion/perf/profile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "accordion/base/error.h"
#include "accordion/base/names.h"
#include "accordion/base/options.h"

namespace accordion::perf {
namespace {

constexpr double kBitsPerByte = 8, kMostGbps = 1e6, kBucketBytes = 25 << 20;

double hops(Collective kind, int ranks) {
  return (kind == Collective::kSum ? 2.0 : 1.0) * (ranks - 1);
}

// What a host's link carries for each byte of the collective. Where all ranks fit into one host, its link stands for what
// is between them; it takes the same time to reach one rank in another host.
double carried(Collective kind, int ranks, int ranks_per_host) {
  const double p = ranks, h = ranks_per_host;
  const double sent = kind == Collective::kSum ? 2 * (p - 1) / p : kind == Collective::kGather ? p - 1 : 1;
  return sent * std::max(1.0, h * (p - h) / (p - 1));
}

Line line_of(Collective kind, const PieceProfile& piece, int ranks, int ranks_per_host, double scale) {
  return {hops(kind, ranks) * piece.latency_us * 1e-6,
          carried(kind, ranks, ranks_per_host) * kBitsPerByte / (piece.bandwidth_gbps * scale * 1e9)};
}

PieceProfile piece_of(Collective kind, const Line& line, int ranks, int ranks_per_host) {
  const double gbps = carried(kind, ranks, ranks_per_host) * kBitsPerByte / (line.seconds_per_byte * 1e9);
  return {line.seconds * 1e6 / hops(kind, ranks),
          std::min(gbps, kMostGbps)};  // A flat line has no bandwidth.
}

// Where the second line takes over from the first. On another network that may make time fall there; then it is where
// they meet.
double large_from(const Line& small, const Line& large, double bytes) {
  if (large.at(bytes) >= small.at(bytes)) return bytes;
  const double steeper = large.seconds_per_byte - small.seconds_per_byte;
  return steeper == 0 ? 0 : std::max(0.0, (small.seconds - large.seconds) / steeper);
}

std::vector<BucketProfile> buckets_of(const ModelProfile& model) {
  if (!model.buckets.empty()) return model.buckets;
  std::vector<BucketProfile> buckets;
  constexpr auto kMost = static_cast<std::int64_t>(kBucketBytes / sizeof(float));
  for (std::int64_t done = 0; done < model.parameters;) {
    const std::int64_t elements = std::min(kMost, model.parameters - done);
    done += elements;
    buckets.push_back(
        {model.backward_ms * static_cast<double>(done) / static_cast<double>(model.parameters), elements});
  }
  return buckets;
}

// The whole model's.
LayerCost cost_of(const CodecProfile& codec, int measured, int ranks) {
  const double decode_ms = codec.decode_ms + codec.decode_ms_per_message * ranks;
  const double equal = 1.0 / static_cast<double>(std::max<std::size_t>(1, codec.rounds.size()));
  LayerCost cost;
  for (const RoundProfile& round : codec.rounds)
    cost.rounds.push_back({round.collective, bytes_at(round, measured, ranks),
                           codec.encode_ms * round.encode_share.value_or(equal) * 1e-3,
                           decode_ms * round.decode_share.value_or(equal) * 1e-3});
  return cost;
}

LayerCost share_of(LayerCost cost, double share) {
  for (LayerRound& round : cost.rounds) {
    round.bytes *= share;
    round.encode *= share;
    round.decode *= share;
  }
  return cost;
}

// What is compressed is compressed on the host; what is not stays on the device.
void add_copies(const DeviceProfile& device, double bytes, LayerCost& cost) {
  if (cost.rounds.empty()) return;
  cost.rounds.front().encode += bytes * kBitsPerByte / (device.to_host_gbps * 1e9);
  cost.rounds.back().decode += bytes * kBitsPerByte / (device.to_device_gbps * 1e9);
}

const CodecProfile* codec_in(const ModelProfile& model, std::string_view codec) {
  for (const CodecProfile& each : model.codecs)
    if (each.codec == codec) return &each;
  return nullptr;
}

}  // namespace

double bytes_at(const RoundProfile& round, int measured, int ranks) {
  const double p = ranks, q = measured;
  if (round.collective == Collective::kScatter) return round.bytes * ((p - 1) / p) / ((q - 1) / q);
  return round.split ? round.bytes * q / p : round.bytes;
}

const ModelProfile& find_model(const Profile& profile, std::string_view model, int batch) {
  std::vector<std::string> names;
  if (model.empty()) {
    for (const ModelProfile& each : profile.models)
      if (std::find(names.begin(), names.end(), each.model) == names.end()) names.push_back(each.model);
    if (names.size() != 1)
      throw UsageError("profile: " + (names.empty() ? "no model, expected one that has one"
                                                    : "several models: " + join(names) +
                                                          ", expected one of them to be named"));
    return find_model(profile, names[0], batch);
  }
  for (const ModelProfile& each : profile.models) {
    if (each.model == model && (batch == 0 || each.batch == batch)) return each;
    const std::string name =
        batch == 0 ? each.model : each.model + " with batch " + std::to_string(each.batch);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const std::string wanted(model);
  throw UsageError(
      "profile: " +
      unknown_name("model", batch == 0 ? wanted : wanted + " with batch " + std::to_string(batch), names));
}

const CodecProfile& find_codec(const ModelProfile& model, std::string_view codec) {
  if (const CodecProfile* found = codec_in(model, codec)) return *found;
  std::vector<std::string> names;
  for (const CodecProfile& each : model.codecs) names.push_back(each.codec);
  throw UsageError("profile: model " + model.model + ": " + unknown_name("codec", codec, names));
}

CollectiveProfile collective_of(Collective kind, const Fit& fit, int ranks, int ranks_per_host) {
  CollectiveProfile result{.r_squared = std::clamp(fit.r_squared, 0.0, 1.0)};
  if (std::isfinite(fit.cost.large_from)) {
    result.piece = piece_of(kind, fit.cost.large, ranks, ranks_per_host);
    result.small = piece_of(kind, fit.cost.small, ranks, ranks_per_host);
    result.small_below_bytes = fit.cost.large_from;
  } else {
    result.piece = piece_of(kind, fit.cost.small, ranks, ranks_per_host);
  }
  return result;
}

Link link_of(const Profile& profile, int ranks, double bandwidth_gbps) {
  check_number("profile", "ranks", ranks, at_least(2));
  check_number("profile", "bandwidth_gbps", bandwidth_gbps, above(0));
  const NetworkProfile& network = profile.network;
  const double scale = bandwidth_gbps / network.bandwidth_gbps;
  const auto cost = [&](Collective kind, const CollectiveProfile& measured, int ranks_per_host) -> Cost {
    const Line line = line_of(kind, measured.piece, ranks, ranks_per_host, scale);
    if (!measured.small) return {.small = line};
    const Line small = line_of(kind, *measured.small, ranks, ranks_per_host, scale);
    // What decides is the message from one rank to another: of a sum its part, of a scatter what is for one.
    const double parts = kind == Collective::kSum       ? static_cast<double>(ranks) / network.ranks
                         : kind == Collective::kScatter ? (ranks - 1.0) / (network.ranks - 1.0)
                                                        : 1;
    return {small, line, large_from(small, line, measured.small_below_bytes * parts)};
  };
  Link link;
  for (const Collective kind : {Collective::kSum, Collective::kGather, Collective::kScatter})
    link[kind] = cost(kind, network[kind], network.ranks_per_host);
  if (network.dense) link.dense = cost(Collective::kSum, *network.dense, 1);
  return link;
}

StepModel step_model(const Profile& profile, const ModelProfile& model, std::string_view codec, int ranks,
                     double bandwidth_gbps) {
  StepModel step{.ranks = ranks,
                 .ready = {},
                 .backward = model.backward_ms * 1e-3,
                 .rest = model.rest_ms * 1e-3,
                 .stretch = model.stretch,
                 .delay = model.delay_ms_per_mb * 1e-9,
                 .crowding = model.crowding,
                 .link = link_of(profile, ranks, bandwidth_gbps),
                 .layers = {}};
  const bool compresses = !codec.empty() && codec != "none";
  const CodecProfile* none = codec_in(model, "none");
  const LayerCost level =
      compresses ? cost_of(find_codec(model, codec), profile.network.ranks, ranks) : LayerCost{};
  const double total = static_cast<double>(model.parameters);
  for (const BucketProfile& bucket : buckets_of(model)) {
    const double elements = static_cast<double>(bucket.elements), share = elements / total;
    const double bytes = elements * sizeof(float);
    LayerModel layer{.bucket = static_cast<int>(step.layers.size())};
    layer.dense.rounds = {{Collective::kSum, bytes, none ? none->encode_ms * 1e-3 * share : 0,
                           none ? none->decode_ms * 1e-3 * share : 0}};
    if (compresses) {
      layer.levels = {share_of(level, share)};
      if (profile.device) add_copies(*profile.device, bytes, layer.levels[0]);
    }
    step.ready.push_back(bucket.ready_ms * 1e-3);
    step.layers.push_back(std::move(layer));
  }
  // With compression the ranks tell each other at the end whether all of it was finite.
  if (compresses)
    step.layers.back().levels[0].rounds.push_back({Collective::kSum, sizeof(std::int32_t), 0, 0});
  return step;
}

}  // namespace accordion::perf
