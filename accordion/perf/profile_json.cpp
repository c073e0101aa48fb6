// Profiles as JSON. Whatever a hand may have written is checked: where, what it is, and what would be right.
#include <cmath>
#include <limits>
#include <type_traits>

#include "accordion/base/json.h"
#include "accordion/base/read_file.h"
#include "accordion/perf/profile.h"

namespace accordion::perf {
namespace {

constexpr std::size_t kMostEntries = 1'000'000, kMostText = 4096, kMostShown = 60;
constexpr std::array<const char*, kCollectives> kCollectiveNames = {"sum", "gather", "scatter"};

// Far beyond anything there is, and far from what arithmetic cannot hold.
const Allowed kTime = at_least(0).up_to(1e9), kGbps = above(0).up_to(1e6), kCount = at_least(1).up_to(1e13),
              kBytes = at_least(0).up_to(1e15), kShare = at_least(0).up_to(1);

// One object of the file, and where it is.
class Node {
 public:
  Node(const Json& json, std::string file, std::string where)
      : json_(json), file_(std::move(file)), where_(std::move(where)) {
    if (!json_.is_object())
      throw Error(file_ + ": " + (where_.empty() ? "the file" : where_) + " is " + shown(json_) +
                  ", expected an object");
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& what) const {
    throw Error(file_ + ": " + path(key) + " " + what);
  }

  const Json* find(const char* key) {
    known_.emplace_back(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  template <class Value>
  void optional(const char* key, Value& value, const Allowed& allowed = {}) {
    if (const Json* found = find(key)) read(key, *found, value, allowed);
  }

  template <class Value>
  void optional(const char* key, std::optional<Value>& value, const Allowed& allowed = {}) {
    if (const Json* found = find(key)) read(key, *found, value.emplace(), allowed);
  }

  template <class Value>
  void required(const char* key, Value& value, const Allowed& allowed = {}) {
    read(key, present(key), value, allowed);
  }

  Node object(const char* key) { return {present(key), file_, path(key)}; }

  // A list of objects, one after the other.
  template <class Take>
  void list(const char* key, bool required, Take&& take) {
    const Json* found = required ? &present(key) : find(key);
    if (!found) return;
    check_list(key, *found);
    for (std::size_t i = 0; i < found->size(); ++i) {
      Node entry((*found)[i], file_, path(key) + "[" + std::to_string(i) + "]");
      take(entry);
      entry.refuse_unknown();
    }
  }

  void check_list(const std::string& key, const Json& json) const {
    if (!json.is_array()) refuse(key, "is " + shown(json) + ", expected a list");
    if (json.size() > kMostEntries)
      refuse(key, "has " + std::to_string(json.size()) + " entries, expected at most " +
                      std::to_string(kMostEntries));
  }

  template <class Value>
  void read(const std::string& key, const Json& json, Value& value, const Allowed& allowed) const {
    if constexpr (std::is_same_v<Value, std::string>) {
      if (!json.is_string()) refuse(key, "is " + shown(json) + ", expected text");
      json.get_to(value);
      if (value.size() > kMostText)
        refuse(key, "has " + std::to_string(value.size()) + " bytes, expected at most " +
                        std::to_string(kMostText));
    } else if constexpr (std::is_same_v<Value, bool>) {
      if (!json.is_boolean()) refuse(key, "is " + shown(json) + ", expected true or false");
      json.get_to(value);
    } else {
      if (std::is_integral_v<Value> ? !json.is_number_integer() : !json.is_number())
        refuse(key, "is " + shown(json) + ", expected a " +
                        (std::is_integral_v<Value> ? "whole number" : "number"));
      if (!allowed.holds(json.get<double>()))
        refuse(key, "is " + shown(json) + ", expected " + allowed.text());
      json.get_to(value);
    }
  }

  void refuse_unknown() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      throw Error(file_ + ": " + (where_.empty() ? "" : where_ + ": ") +
                  unknown_name("key", key.substr(0, kMostShown), known_));
    }
  }

  const Json& json() const { return json_; }

 private:
  const Json& present(const char* key) {
    const Json* found = find(key);
    if (!found) refuse(key, "is missing");
    return *found;
  }
  std::string path(const std::string& key) const { return where_.empty() ? key : where_ + "." + key; }

  const Json& json_;
  std::string file_, where_;
  std::vector<std::string> known_;
};

void read_piece(Node& node, PieceProfile& piece) {
  node.required("latency_us", piece.latency_us, kTime);
  node.required("bandwidth_gbps", piece.bandwidth_gbps, kGbps);
}

void read_samples(Node& node, std::vector<SampleProfile>& samples) {
  const Json* found = node.find("samples");
  if (!found) return;
  node.check_list("samples", *found);
  for (std::size_t i = 0; i < found->size(); ++i) {
    const std::string key = "samples[" + std::to_string(i) + "]";
    const Json& pair = (*found)[i];
    if (!pair.is_array() || pair.size() != 2)
      node.refuse(key, "is " + shown(pair) + ", expected [bytes, microseconds]");
    SampleProfile& sample = samples.emplace_back();
    node.read(key + "[0]", pair[0], sample.bytes, kBytes);
    node.read(key + "[1]", pair[1], sample.us, kTime);
  }
}

void read_collective(Node node, CollectiveProfile& collective) {
  read_piece(node, collective.piece);
  if (node.find("small")) {
    Node small = node.object("small");
    small.required("below_bytes", collective.small_below_bytes, above(0).up_to(1e15));
    read_piece(small, collective.small.emplace());
    small.refuse_unknown();
  }
  node.optional("r_squared", collective.r_squared, kShare);
  read_samples(node, collective.samples);
  node.refuse_unknown();
}

void read_network(Node node, NetworkProfile& network) {
  node.required("ranks", network.ranks, at_least(2).up_to(1e6));
  node.optional("ranks_per_host", network.ranks_per_host, at_least(1).up_to(1e4));
  node.required("bandwidth_gbps", network.bandwidth_gbps, kGbps);
  for (std::size_t i = 0; i < kCollectives; ++i)
    read_collective(node.object(kCollectiveNames[i]), network.collectives[i]);
  if (node.find("dense")) read_collective(node.object("dense"), network.dense.emplace());
  node.refuse_unknown();
}

void read_round(Node& node, RoundProfile& round) {
  std::string name;
  node.required("collective", name);
  const auto found = std::find(kCollectiveNames.begin(), kCollectiveNames.end(), name);
  if (found == kCollectiveNames.end())
    node.refuse("collective", "is " + shown(Json(name)) + ", expected one of sum, gather, scatter");
  round.collective = static_cast<Collective>(found - kCollectiveNames.begin());
  node.required("bytes", round.bytes, kBytes);
  node.optional("split", round.split);
  node.optional("encode_share", round.encode_share, kShare);
  node.optional("decode_share", round.decode_share, kShare);
}

void read_codec(Node& node, CodecProfile& codec) {
  node.required("codec", codec.codec);
  node.required("encode_ms", codec.encode_ms, kTime);
  node.required("decode_ms", codec.decode_ms, kTime);
  node.optional("decode_ms_per_message", codec.decode_ms_per_message, kTime);
  node.list("rounds", true, [&](Node& round) { read_round(round, codec.rounds.emplace_back()); });
  // One more is the agreement at the end of a step.
  if (codec.rounds.empty() || codec.rounds.size() >= kMostRounds)
    node.refuse("rounds", "has " + std::to_string(codec.rounds.size()) + " entries, expected 1 to " +
                              std::to_string(kMostRounds - 1));
  node.optional("extra_memory_bytes_per_parameter", codec.extra_memory_bytes_per_parameter,
                at_least(0).up_to(1e4));
}

void read_buckets(Node& node, ModelProfile& model) {
  node.list("buckets", false, [&](Node& entry) {
    const double before = model.buckets.empty() ? 0 : model.buckets.back().ready_ms;
    BucketProfile& bucket = model.buckets.emplace_back();
    entry.required("ready_ms", bucket.ready_ms, at_least(before).up_to(model.backward_ms));
    entry.required("elements", bucket.elements, kCount);
  });
  double elements = 0;
  for (const BucketProfile& bucket : model.buckets) elements += static_cast<double>(bucket.elements);
  if (!model.buckets.empty() && elements != static_cast<double>(model.parameters))
    node.refuse("buckets", "have " + number_text(elements) +
                               " elements, expected those of the model: " + std::to_string(model.parameters));
}

void read_model(Node& node, ModelProfile& model) {
  node.required("model", model.model);
  node.required("batch", model.batch, at_least(1).up_to(1e9));
  node.required("parameters", model.parameters, kCount);
  node.required("backward_ms", model.backward_ms, above(0).up_to(1e9));
  node.optional("rest_ms", model.rest_ms, kTime);
  node.optional("slowdown", model.slowdown, at_least(1).up_to(100));
  node.optional("stretch", model.stretch, at_least(0).up_to(100));
  node.optional("delay_ms_per_mb", model.delay_ms_per_mb, at_least(0).up_to(1e6));
  node.optional("crowding", model.crowding, at_least(1).up_to(100));
  read_buckets(node, model);
  node.list("codecs", false, [&](Node& codec) { read_codec(codec, model.codecs.emplace_back()); });
}

void read_format(Node& node, const std::string& file) {
  std::string format;
  int version = 0;
  node.required("format", format);
  if (format != kProfileFormat)
    node.refuse("format", "is " + shown(Json(format)) + ", expected \"" + std::string(kProfileFormat) + "\"");
  node.required("version", version, at_least(0).up_to(1e9));
  if (version != kProfileVersion)
    node.refuse("version", "is " + std::to_string(version) + ", expected " + std::to_string(kProfileVersion) +
                               ", which is what this program knows");
}

// Bytes are whole numbers mostly, and then look like them.
Json whole(double value) {
  if (value != std::trunc(value) || value > 1e15) return value;
  return static_cast<std::int64_t>(value);
}

Json piece_json(const PieceProfile& piece) {
  return {{"latency_us", piece.latency_us}, {"bandwidth_gbps", piece.bandwidth_gbps}};
}

Json collective_json(const CollectiveProfile& collective) {
  Json json = piece_json(collective.piece);
  if (collective.small) {
    json["small"] = {{"below_bytes", whole(collective.small_below_bytes)}};
    json["small"].update(piece_json(*collective.small));
  }
  json["r_squared"] = collective.r_squared;
  for (const SampleProfile& sample : collective.samples)
    json["samples"].push_back(Json::array({whole(sample.bytes), sample.us}));
  return json;
}

Json codec_json(const CodecProfile& codec) {
  Json json = {{"codec", codec.codec},
               {"encode_ms", codec.encode_ms},
               {"decode_ms", codec.decode_ms},
               {"decode_ms_per_message", codec.decode_ms_per_message}};
  for (const RoundProfile& round : codec.rounds) {
    Json entry = {{"collective", kCollectiveNames[static_cast<std::size_t>(round.collective)]},
                  {"bytes", whole(round.bytes)}};
    if (round.split) entry["split"] = true;
    if (round.encode_share) entry["encode_share"] = *round.encode_share;
    if (round.decode_share) entry["decode_share"] = *round.decode_share;
    json["rounds"].push_back(entry);
  }
  json["extra_memory_bytes_per_parameter"] = codec.extra_memory_bytes_per_parameter;
  return json;
}

Json model_json(const ModelProfile& model) {
  Json json = {{"model", model.model},
               {"batch", model.batch},
               {"parameters", model.parameters},
               {"backward_ms", model.backward_ms},
               {"rest_ms", model.rest_ms},
               {"stretch", model.stretch},
               {"delay_ms_per_mb", model.delay_ms_per_mb},
               {"crowding", model.crowding}};
  if (model.slowdown != 1) json["slowdown"] = model.slowdown;
  for (const BucketProfile& bucket : model.buckets)
    json["buckets"].push_back({{"ready_ms", bucket.ready_ms}, {"elements", bucket.elements}});
  for (const CodecProfile& codec : model.codecs) json["codecs"].push_back(codec_json(codec));
  return json;
}

// What has no further parts stands on a line of its own, as a person would write it.
void write_json(const Json& json, std::size_t indent, std::string& text) {
  const bool flat = !json.is_structured() || std::none_of(json.begin(), json.end(), [](const Json& part) {
    return part.is_structured();
  });
  if (flat && (indent > 0 || !json.is_object())) {
    const std::string line = json.dump();
    for (std::size_t i = 0, quotes = 0; i < line.size(); ++i) {
      text += line[i];
      if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) ++quotes;
      if (quotes % 2 == 0 && (line[i] == ',' || line[i] == ':')) text += ' ';
    }
    return;
  }
  const std::string margin(indent + 2, ' ');
  text += json.is_array() ? "[" : "{";
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    text += (first ? "\n" : ",\n") + margin + (json.is_array() ? "" : Json(key).dump() + ": ");
    write_json(value, indent + 2, text);
    first = false;
  }
  text += "\n" + std::string(indent, ' ') + (json.is_array() ? "]" : "}");
}

}  // namespace

Profile parse_profile(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  Node node(json, file, "");
  Profile profile;
  read_format(node, file);
  node.optional("machine", profile.machine);
  read_network(node.object("network"), profile.network);
  node.list("models", false, [&](Node& model) { read_model(model, profile.models.emplace_back()); });
  if (node.find("device")) {
    Node device = node.object("device");
    device.required("to_host_gbps", profile.device.emplace().to_host_gbps, kGbps);
    device.required("to_device_gbps", profile.device->to_device_gbps, kGbps);
    device.refuse_unknown();
  }
  node.optional("memory_gb", profile.memory_gb, above(0).up_to(1e9));
  if (node.find("sources")) {
    Node sources = node.object("sources");
    for (const auto& [key, value] : sources.json().items())
      sources.read(key, value, profile.sources[key], {});
  }
  node.refuse_unknown();
  return profile;
}

Profile read_profile(const std::filesystem::path& path) {
  return parse_profile(read_file(path, kMostJsonBytes), path.string());
}

std::string profile_text(const Profile& profile) {
  Json json = {{"format", kProfileFormat}, {"version", kProfileVersion}, {"machine", profile.machine}};
  const NetworkProfile& network = profile.network;
  Json& links = json["network"] = {{"ranks", network.ranks},
                                   {"ranks_per_host", network.ranks_per_host},
                                   {"bandwidth_gbps", network.bandwidth_gbps}};
  for (std::size_t i = 0; i < kCollectives; ++i)
    links[kCollectiveNames[i]] = collective_json(network.collectives[i]);
  if (network.dense) links["dense"] = collective_json(*network.dense);
  json["models"] = Json::array();
  for (const ModelProfile& model : profile.models) json["models"].push_back(model_json(model));
  if (profile.device)
    json["device"] = {{"to_host_gbps", profile.device->to_host_gbps},
                      {"to_device_gbps", profile.device->to_device_gbps}};
  if (profile.memory_gb) json["memory_gb"] = *profile.memory_gb;
  for (const auto& [key, source] : profile.sources) json["sources"][key] = source;
  std::string text;
  write_json(json, 0, text);
  return text + "\n";
}

}  // namespace accordion::perf
