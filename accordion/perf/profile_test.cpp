#include "accordion/perf/profile.h"

#include <gtest/gtest.h>

#include <fstream>

#include "accordion/base/json.h"
#include "accordion/base/temporary_folder.h"

namespace accordion::perf {
namespace {

Profile example() {
  Profile profile{.machine = "two cores, \"slow\": really"};
  profile.network = {.ranks = 4, .ranks_per_host = 1, .bandwidth_gbps = 10};
  profile.network[Collective::kSum] = {
      .piece = {20, 9.5}, .small = PieceProfile{10, 20}, .small_below_bytes = 65536, .r_squared = 0.99};
  profile.network[Collective::kGather] = {
      .piece = {15, 8}, .r_squared = 0.9, .samples = {{4, 50}, {1e6, 3000}}};
  profile.network[Collective::kScatter] = {.piece = {15, 7}};
  ModelProfile model{.model = "resnet20",
                     .batch = 128,
                     .parameters = 1000,
                     .backward_ms = 100,
                     .rest_ms = 50,
                     .stretch = 0.5,
                     .delay_ms_per_mb = 1.5,
                     .crowding = 1.25,
                     .buckets = {{40, 600}, {99, 400}}};
  model.codecs.push_back({.codec = "powersgd:approx-rank=4",
                          .encode_ms = 8,
                          .decode_ms = 4,
                          .rounds = {{.collective = Collective::kSum, .bytes = 100, .encode_share = 0.75},
                                     {.collective = Collective::kSum, .bytes = 300, .encode_share = 0.25}},
                          .extra_memory_bytes_per_parameter = 8});
  model.codecs.push_back({.codec = "topk:keep=0.01",
                          .encode_ms = 3,
                          .decode_ms = 1,
                          .decode_ms_per_message = 0.5,
                          .rounds = {{.collective = Collective::kGather, .bytes = 80}}});
  model.codecs.push_back({.codec = "sign-vote",
                          .rounds = {{.collective = Collective::kScatter, .bytes = 96},
                                     {.collective = Collective::kGather, .bytes = 32, .split = true}}});
  profile.models.push_back(model);
  profile.device = {100, 90};
  profile.sources = {{"network.sum", "measured"}, {"device", "assumed"}};
  return profile;
}

// The example with one value replaced, or removed where there is none.
std::string edited(const std::string& pointer, const std::optional<Json>& value) {
  Json json = Json::parse(profile_text(example()));
  const nlohmann::ordered_json::json_pointer at(pointer);
  if (value)
    json[at] = *value;
  else
    json[at.parent_pointer()].erase(at.back());
  return json.dump();
}

std::string refusal(const std::string& text) {
  try {
    parse_profile(text, "my.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Profile, ComesBackAsItWas) {
  const std::string text = profile_text(example());
  const Profile read = parse_profile(text, "my.json");
  EXPECT_EQ(profile_text(read), text);
  EXPECT_EQ(read.machine, "two cores, \"slow\": really");
  EXPECT_EQ(read.models.at(0).codecs.at(0).rounds.at(1).encode_share, 0.25);
  EXPECT_EQ(read.network[Collective::kGather].samples.at(1).us, 3000);
  EXPECT_TRUE(read.models.at(0).codecs.at(2).rounds.at(1).split);
  EXPECT_EQ(read.device->to_device_gbps, 90);
}

TEST(Profile, StandsInAFile) {
  const TemporaryFolder folder(std::filesystem::temp_directory_path() / "accordion-profile-");
  const auto path = folder.path() / "profile.json";
  std::ofstream(path) << profile_text(example());
  EXPECT_EQ(profile_text(read_profile(path)), profile_text(example()));
}

TEST(Profile, WhatIsOptionalMayBeLeftOut) {
  for (const char* key :
       {"/machine", "/models", "/device", "/sources", "/network/ranks_per_host", "/network/sum/small",
        "/network/sum/r_squared", "/network/gather/samples", "/models/0/buckets", "/models/0/codecs",
        "/models/0/rest_ms", "/models/0/stretch", "/models/0/delay_ms_per_mb", "/models/0/crowding"})
    EXPECT_EQ(refusal(edited(key, {})), "accepted") << key;
}

TEST(Profile, WhatIsNotIsNamed) {
  for (const char* key :
       {"/format", "/version", "/network", "/network/ranks", "/network/sum", "/network/sum/latency_us",
        "/network/scatter/bandwidth_gbps", "/models/0/parameters", "/models/0/codecs/1/encode_ms",
        "/models/0/codecs/1/rounds", "/models/0/buckets/1/elements", "/device/to_host_gbps"}) {
    const std::string message = refusal(edited(key, {})),
                      name = std::string(key).substr(std::string(key).rfind('/') + 1);
    EXPECT_EQ(message.rfind("my.json: ", 0), 0u) << message;
    EXPECT_NE(message.find(name + " is missing"), std::string::npos) << message;
  }
}

TEST(Profile, WrongTypesAndAbsurdNumbersAreRefused) {
  const std::vector<std::tuple<const char*, Json, const char*>> cases = {
      {"/format", "profile", "my.json: format is \"profile\", expected \"accordion-profile\""},
      {"/version", 2, "my.json: version is 2, expected 1"},
      {"/version", "1", "my.json: version is \"1\", expected a whole number"},
      {"/machine", 3, "my.json: machine is 3, expected text"},
      {"/network", Json::array(), "my.json: network is a list, expected an object"},
      {"/network/ranks", 1, "my.json: network.ranks is 1, expected [2, "},
      {"/network/ranks", 2.5, "my.json: network.ranks is 2.5, expected a whole number"},
      {"/network/bandwidth_gbps", 0, "my.json: network.bandwidth_gbps is 0, expected (0, "},
      {"/network/sum/bandwidth_gbps", 0.0, "my.json: network.sum.bandwidth_gbps is 0.0, expected (0, "},
      {"/network/sum/small/below_bytes", -1, "my.json: network.sum.small.below_bytes is -1, expected (0, "},
      {"/network/gather/latency_us", -1e-9, "my.json: network.gather.latency_us is -1e-09, expected [0, "},
      {"/network/gather/latency_us", 1e300, "my.json: network.gather.latency_us is 1e+300, expected [0, "},
      {"/network/gather/latency_us", nullptr,
       "my.json: network.gather.latency_us is null, expected a number"},
      {"/network/gather/r_squared", 1.5, "my.json: network.gather.r_squared is 1.5, expected [0, 1]"},
      {"/network/gather/samples/1", Json::array({1}),
       "my.json: network.gather.samples[1] is a list, expected [bytes"},
      {"/network/gather/samples/1/0", "x",
       "my.json: network.gather.samples[1][0] is \"x\", expected a number"},
      {"/models", "resnet20", "my.json: models is \"resnet20\", expected a list"},
      {"/models/0", 7, "my.json: models[0] is 7, expected an object"},
      {"/models/0/batch", 0, "my.json: models[0].batch is 0, expected "},
      {"/models/0/backward_ms", -3, "my.json: models[0].backward_ms is -3, expected "},
      {"/models/0/parameters", 1001,
       "my.json: models[0].buckets have 1000 elements, expected those of the model: 1001"},
      {"/models/0/buckets/1/ready_ms", 30,
       "my.json: models[0].buckets[1].ready_ms is 30, expected [40, 100]"},
      {"/models/0/buckets/1/ready_ms", 101,
       "my.json: models[0].buckets[1].ready_ms is 101, expected [40, 100]"},
      {"/models/0/codecs/1/rounds", Json::array(),
       "my.json: models[0].codecs[1].rounds has 0 entries, expected 1 to 3"},
      {"/models/0/codecs/1/rounds/0/collective", "allreduce",
       "my.json: models[0].codecs[1].rounds[0].collective is \"allreduce\", expected one of sum, gather, "
       "scatter"},
      {"/models/0/codecs/1/rounds/0/bytes", -80,
       "my.json: models[0].codecs[1].rounds[0].bytes is -80, expected "},
      {"/models/0/codecs/1/rounds/0/split", 1,
       "my.json: models[0].codecs[1].rounds[0].split is 1, expected true or false"},
      {"/device/to_host_gbps", 0, "my.json: device.to_host_gbps is 0, expected (0, "},
      {"/sources/device", 1, "my.json: sources.device is 1, expected text"},
      {"/network/bandwith_gbps", 1,
       "my.json: network: unknown key \"bandwith_gbps\"; did you mean \"bandwidth_gbps\"?"},
  };
  for (const auto& [key, value, expected] : cases) {
    const std::string message = refusal(edited(key, value));
    EXPECT_EQ(message.rfind(expected, 0), 0u) << key << ": " << message << "\nexpected: " << expected;
  }
}

TEST(Profile, WhatIsNotJsonIsRefusedWhereverItEnds) {
  const std::string text = profile_text(example());
  for (std::size_t length = 0; length + 2 < text.size(); length += 7)
    EXPECT_NE(refusal(text.substr(0, length)).find("my.json is not JSON, or was cut short"),
              std::string::npos)
        << length;
  for (const char* number : {"NaN", "Infinity", "-", "1e999"}) {
    std::string spoilt = text;
    spoilt.replace(spoilt.find("9.5"), 3, number);
    EXPECT_NE(refusal(spoilt), "accepted") << number;
  }
  EXPECT_NE(refusal(std::string(100000, '[')), "accepted");
  EXPECT_NE(refusal(std::string(100000, '[') + std::string(100000, ']')), "accepted");
}

TEST(Profile, FilesAndListsHaveALargestSize) {
  const TemporaryFolder folder(std::filesystem::temp_directory_path() / "accordion-profile-");
  const auto path = folder.path() / "large.json";
  std::ofstream(path).put(' ');
  std::filesystem::resize_file(path, (64 << 20) + 1);
  EXPECT_THROW(read_profile(path), Error);
  EXPECT_THROW(read_profile(folder.path() / "none.json"), Error);
  EXPECT_THROW(read_profile(folder.path()), Error);
  std::string text = profile_text(example());
  std::string samples = "[4, 50.0]";
  for (int i = 0; i < 1'000'000; ++i) samples += ",[4,5]";
  text.replace(text.find("[4, 50.0]"), 9, samples);
  const std::string message = refusal(text);
  EXPECT_NE(message.find("network.gather.samples has 1000002 entries, expected at most 1000000"),
            std::string::npos)
      << message.substr(0, 200);
}

TEST(Profile, LinksFollowTheFormulas) {
  const Profile profile = example();
  const Link link = link_of(profile, 4, 10);
  EXPECT_DOUBLE_EQ(link[Collective::kSum].seconds(1e6), 6 * 20e-6 + 2 * 1e6 * 3 / 4 * 8 / 9.5e9);
  EXPECT_DOUBLE_EQ(link[Collective::kSum].seconds(1e3), 6 * 10e-6 + 2 * 1e3 * 3 / 4 * 8 / 20e9);
  EXPECT_DOUBLE_EQ(link[Collective::kGather].seconds(1e6), 3 * 15e-6 + 1e6 * 3 * 8 / 8e9);
  EXPECT_DOUBLE_EQ(link[Collective::kScatter].seconds(1e6), 3 * 15e-6 + 1e6 * 8 / 7e9);
  const Link other = link_of(profile, 8, 1);
  EXPECT_DOUBLE_EQ(other[Collective::kSum].seconds(1e8), 14 * 20e-6 + 2 * 1e8 * 7 / 8 * 8 / 0.95e9);
  EXPECT_DOUBLE_EQ(other[Collective::kGather].seconds(1e6), 7 * 15e-6 + 1e6 * 7 * 8 / 0.8e9);
  EXPECT_THROW(link_of(profile, 1, 10), UsageError);
  EXPECT_THROW(link_of(profile, 4, 0), UsageError);
}

TEST(Profile, AFitComesBackAtItsOwnRanksAndRate) {
  const Fit two{.cost = {{2e-4, 1e-9}, {5e-4, 2e-9}, 1e5}, .r_squared = 0.97};
  const Fit one{.cost = {{3e-4, 4e-9}}, .r_squared = 0.8};
  for (const int ranks : {2, 4, 7})
    for (const int host : {1, 2, 4, 8}) {
      Profile profile{.network = {.ranks = ranks, .ranks_per_host = host, .bandwidth_gbps = 3}};
      for (const Collective kind : {Collective::kSum, Collective::kGather, Collective::kScatter}) {
        profile.network[kind] = collective_of(kind, kind == Collective::kGather ? one : two, ranks, host);
        const Cost cost = link_of(profile, ranks, 3)[kind];
        for (const double bytes : {1.0, 1e3, 0.99e5, 1.01e5, 1e8})
          EXPECT_NEAR(cost.seconds(bytes) / (kind == Collective::kGather ? one : two).cost.seconds(bytes), 1,
                      1e-9);
      }
      EXPECT_DOUBLE_EQ(profile.network[Collective::kSum].r_squared, 0.97);
    }
}

TEST(Profile, AFlatLineHasTheLargestBandwidthThatAFileTakes) {
  const CollectiveProfile flat = collective_of(Collective::kSum, {.cost = {{1e-4, 0}}}, 4, 1);
  EXPECT_DOUBLE_EQ(flat.piece.bandwidth_gbps, 1e6);
}

TEST(Profile, WhereAHandWroteLinesThatFallTheyMeet) {
  Profile profile = example();
  profile.network[Collective::kSum].small =
      PieceProfile{30, 4};  // Above the other one, at 64 KiB and everywhere.
  const Cost cost = link_of(profile, 4, 10)[Collective::kSum];
  EXPECT_DOUBLE_EQ(cost.seconds(1e3), cost.large.at(1e3));
}

TEST(Profile, TimeNeverFallsWithSizeOnAnyNetwork) {
  const Profile profile = example();
  for (const int ranks : {2, 4, 16, 64})
    for (const double gbps : {0.01, 1.0, 10.0, 1000.0})
      for (const Cost& cost : link_of(profile, ranks, gbps).costs) {
        double before = 0;
        for (double bytes = 1; bytes < 1e10; bytes *= 1.3) {
          EXPECT_GE(cost.seconds(bytes), before * (1 - 1e-12));
          before = cost.seconds(bytes);
        }
      }
}

TEST(Profile, RanksOfOneHostShareItsLink) {
  Profile profile = example();
  const double alone = link_of(profile, 16, 10)[Collective::kGather].large_from;
  EXPECT_EQ(alone, std::numeric_limits<double>::infinity());
  const auto per_byte = [&](int per_host) {
    profile.network.ranks_per_host = per_host;
    return link_of(profile, 16, 10)[Collective::kGather].small.seconds_per_byte;
  };
  // Of four ranks' messages each goes to twelve ranks elsewhere.
  EXPECT_NEAR(per_byte(4) / per_byte(1), 4.0 * 12 / 15, 1e-12);
  EXPECT_NEAR(per_byte(16) / per_byte(1), 1, 1e-12);
}

TEST(Profile, AStepHasOneLayerABucket) {
  const Profile profile = example();
  const StepModel step =
      step_model(profile, find_model(profile, "resnet20"), "powersgd:approx-rank=4", 4, 10);
  ASSERT_EQ(step.layers.size(), 2u);
  EXPECT_EQ(step.ready, (std::vector<double>{0.040, 0.099}));
  EXPECT_DOUBLE_EQ(step.backward, 0.1);
  EXPECT_DOUBLE_EQ(step.rest, 0.05);
  EXPECT_DOUBLE_EQ(step.stretch, 0.5);
  EXPECT_DOUBLE_EQ(step.delay, 1.5e-9);
  EXPECT_DOUBLE_EQ(step.crowding, 1.25);
  EXPECT_DOUBLE_EQ(step.layers[0].dense.rounds.at(0).bytes, 2400);
  const LayerCost& level = step.layers[0].at(0);
  ASSERT_EQ(level.rounds.size(), 2u);
  EXPECT_DOUBLE_EQ(level.rounds[1].bytes, 0.6 * 300);
  // 2400 bytes from the device at 100 Gbit/s and back at 90.
  EXPECT_DOUBLE_EQ(level.rounds[0].encode, 0.6 * 8e-3 * 0.75 + 2400 * 8 / 100e9);
  EXPECT_DOUBLE_EQ(level.rounds[1].encode, 0.6 * 8e-3 * 0.25);
  EXPECT_DOUBLE_EQ(level.rounds[1].decode, 0.6 * 4e-3 * 0.5 + 2400 * 8 / 90e9);
  ASSERT_EQ(step.layers[1].at(0).rounds.size(), 3u);  // The last one also agrees on the step.
  EXPECT_DOUBLE_EQ(step.layers[1].at(0).rounds[2].bytes, 4);
  EXPECT_TRUE(step_model(profile, profile.models[0], "", 4, 10).layers[0].levels.empty());
  EXPECT_TRUE(step_model(profile, profile.models[0], "none", 4, 10).layers[0].levels.empty());
}

TEST(Profile, MessagesFollowTheNumberOfRanks) {
  Profile profile = example();
  profile.device.reset();
  const auto level = [&](const char* codec, int ranks) {
    return step_model(profile, profile.models[0], codec, ranks, 10).layers[0].at(0);
  };
  EXPECT_DOUBLE_EQ(level("topk:keep=0.01", 4).rounds[0].decode, 0.6 * (1 + 4 * 0.5) * 1e-3);
  EXPECT_DOUBLE_EQ(level("topk:keep=0.01", 16).rounds[0].decode, 0.6 * (1 + 16 * 0.5) * 1e-3);
  EXPECT_DOUBLE_EQ(level("topk:keep=0.01", 16).rounds[0].bytes, 0.6 * 80);
  EXPECT_DOUBLE_EQ(level("sign-vote", 16).rounds[0].bytes, 0.6 * 128 * 15 / 16);
  EXPECT_DOUBLE_EQ(level("sign-vote", 16).rounds[1].bytes, 0.6 * 8);
}

TEST(Profile, WithoutBucketsTheyAreTheUsualOnes) {
  Profile profile = example();
  ModelProfile& model = profile.models[0];
  model.buckets.clear();
  model.parameters = 3 * (25 << 20) / 4 + 1000;
  const StepModel step = step_model(profile, model, "topk:keep=0.01", 4, 10);
  ASSERT_EQ(step.layers.size(), 4u);
  EXPECT_DOUBLE_EQ(step.layers[3].dense.rounds[0].bytes, 4000);
  EXPECT_DOUBLE_EQ(step.ready[3], step.backward);
  EXPECT_NEAR(step.ready[0], 0.1 / 3, 1e-4);
}

TEST(Profile, DenseGradientsCostWhatNoneCosts) {
  Profile profile = example();
  profile.models[0].codecs.push_back({.codec = "none", .encode_ms = 2, .decode_ms = 1, .rounds = {{}}});
  const StepModel step = step_model(profile, profile.models[0], "none", 4, 10);
  EXPECT_DOUBLE_EQ(step.layers[0].dense.rounds[0].encode, 1.2e-3);
  EXPECT_DOUBLE_EQ(step.layers[0].dense.rounds[0].decode, 0.6e-3);
}

TEST(Profile, WhatItDoesNotHaveIsNamed) {
  const Profile profile = example();
  EXPECT_THROW(find_model(profile, "resnet21"), UsageError);
  EXPECT_THROW(find_model(profile, "resnet20", 64), UsageError);
  EXPECT_EQ(find_model(profile, "resnet20", 128).batch, 128);
  EXPECT_THROW(step_model(profile, profile.models[0], "topk:keep=0.02", 4, 10), UsageError);
}

TEST(Profile, KeepsTheWayOfDenseBucketsTheSlowdownAndTheMemory) {
  Profile profile;
  profile.network.ranks_per_host = 4;
  profile.network.dense = CollectiveProfile{.piece = {.latency_us = 3, .bandwidth_gbps = 7}};
  profile.models = {{.model = "small", .backward_ms = 1, .slowdown = 1.06}};
  profile.memory_gb = 1.5;
  const Profile read = parse_profile(profile_text(profile), "p.json");
  ASSERT_TRUE(read.network.dense);
  EXPECT_EQ(read.network.dense->piece.bandwidth_gbps, 7);
  EXPECT_EQ(read.models[0].slowdown, 1.06);
  EXPECT_EQ(read.memory_gb, 1.5);
  EXPECT_THROW(parse_profile(profile_text({.memory_gb = -1}), "p.json"), Error);

  // A ring crosses a link once; what four ranks send each for themselves, four times as often, but for their own host.
  profile.network.dense->piece = profile.network[Collective::kSum].piece;
  const Link link = link_of(profile, 16, 1);
  EXPECT_NEAR(link[Collective::kSum].small.seconds_per_byte / link.dense->small.seconds_per_byte,
              4.0 * 12 / 15, 1e-9);
  EXPECT_FALSE(link_of(Profile{}, 16, 1).dense);
}

}  // namespace
}  // namespace accordion::perf
