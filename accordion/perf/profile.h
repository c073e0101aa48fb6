// A profile: how fast a machine and its network are, as `accordion calibrate` measures it or as somebody writes it down for a
// cluster that is not at hand. docs/formats.md has the keys of the file.
//
// Units are those of the file: milliseconds, microseconds for latencies, Gbit/s (10^9 bits), bytes.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accordion/perf/link.h"
#include "accordion/perf/step.h"

namespace accordion::perf {

inline constexpr std::string_view kProfileFormat = "accordion-profile";
inline constexpr int kProfileVersion = 1;

// With p ranks, one to a host, a sum of x bytes takes 2(p-1) * latency + 2x(p-1)/p / bandwidth, a gather of x bytes a rank
// (p-1) * latency + x(p-1) / bandwidth, and a scatter of x bytes to others (p-1) * latency + x / bandwidth. So neither
// number changes with the number of ranks.
struct PieceProfile {
  double latency_us = 0, bandwidth_gbps = 1;
};

struct SampleProfile {
  double bytes = 0, us = 0;
};

struct CollectiveProfile {
  PieceProfile piece = {};
  std::optional<PieceProfile> small = {};  // Below small_below_bytes, at the measured number of ranks.
  double small_below_bytes = 0;
  double r_squared = 1;
  std::vector<SampleProfile> samples = {};
};

struct NetworkProfile {
  int ranks = 2;              // It was measured with.
  int ranks_per_host = 1;     // Sharing one link.
  double bandwidth_gbps = 1;  // The rate at which the links run while the collectives reach theirs.
  std::array<CollectiveProfile, kCollectives> collectives = {};
  // Of gradients that go dense on a device: a ring of its own, which crosses each host's link once, whoever shares it.
  std::optional<CollectiveProfile> dense = {};

  const CollectiveProfile& operator[](Collective kind) const {
    return collectives[static_cast<std::size_t>(kind)];
  }
  CollectiveProfile& operator[](Collective kind) { return collectives[static_cast<std::size_t>(kind)]; }
};

// One round of messages, of the whole model.
struct RoundProfile {
  Collective collective = Collective::kSum;
  double bytes = 0;  // What one rank contributes, at the measured number of ranks.
  bool split =
      false;  // Of a gather: ranks share what is gathered, so that one's part falls with their number.
  std::optional<double> encode_share = {}, decode_share = {};  // Of the codec's times; without: equal parts.
};

// Tensors that go dense have a round too, the first.
struct CodecProfile {
  std::string codec = {};  // A setting: "topk:keep=0.01".
  double encode_ms = 0, decode_ms = 0;
  double decode_ms_per_message = 0;  // On top of decode_ms, for each rank's message of a gather.
  std::vector<RoundProfile> rounds = {};
  double extra_memory_bytes_per_parameter = 0;
};

struct BucketProfile {
  double ready_ms = 0;
  std::int64_t elements = 0;
};

struct ModelProfile {
  std::string model = {};
  int batch = 1;  // Of one worker.
  std::int64_t parameters = 1;
  double backward_ms = 0;  // Its end, from its beginning.
  double rest_ms = 0;      // Forward, optimizer, data, and whatever else a step takes.
  double slowdown = 1;     // Of backward by communication beside it, in the published model: its gamma.
  double stretch = 0;      // How much later backward ends for each processor second that the exchange takes.
  double delay_ms_per_mb = 0;               // And for each 10^6 bytes that a rank sends beside it.
  double crowding = 1;                      // How many times as long the exchange takes beside it.
  std::vector<BucketProfile> buckets = {};  // As they become ready. Empty: of 25 MiB, evenly.
  std::vector<CodecProfile> codecs =
      {};  // "none", where it is there, is what dense gradients cost the processor.
};

struct DeviceProfile {
  double to_host_gbps = 1, to_device_gbps = 1;
};

struct Profile {
  std::string machine = {};
  NetworkProfile network = {};
  std::vector<ModelProfile> models = {};
  std::optional<DeviceProfile> device = {};
  std::optional<double> memory_gb = {};             // 10^9 bytes that messages of others may take.
  std::map<std::string, std::string> sources = {};  // Of a key: where its value is from, or "assumed".
};

// Throw Error naming the file, the key and what would be right. Keys that there are not are refused: a profile is edited by
// hand, and a misspelt key would go unnoticed.
Profile read_profile(const std::filesystem::path& path);
Profile parse_profile(std::string_view text, const std::string& file);
std::string profile_text(const Profile& profile);

// Throw UsageError naming those that there are. No name: the only model. A batch of 0: the first profile of the model.
const ModelProfile& find_model(const Profile& profile, std::string_view model, int batch = 0);
const CodecProfile& find_codec(const ModelProfile& model, std::string_view codec);

// What one rank contributes, where it was `round.bytes` with `measured` ranks.
double bytes_at(const RoundProfile& round, int measured, int ranks);

// Of a fit at that many ranks, and back. The scale is `bandwidth_gbps` over the profile's own; ranks of one host share its
// link, and what they send each other does not take it.
CollectiveProfile collective_of(Collective kind, const Fit& fit, int ranks, int ranks_per_host);
Link link_of(const Profile& profile, int ranks, double bandwidth_gbps);

// One pseudo-layer a bucket, with costs in proportion to its elements; the codec is its level 0. "none" or nothing: no level.
StepModel step_model(const Profile& profile, const ModelProfile& model, std::string_view codec, int ranks,
                     double bandwidth_gbps);

}  // namespace accordion::perf
