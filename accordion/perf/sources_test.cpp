// Each value of the published machines' profiles has a source, or is said to be assumed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "accordion/base/json.h"

namespace accordion::perf {
namespace {

// What a value is of, not how much.
const std::set<std::string> kNames = {"format", "version", "machine", "model",  "batch",
                                      "codec",  "models",  "codecs",  "rounds", "sources"};

class Sources {
 public:
  explicit Sources(Json profile) : profile_(std::move(profile)) {}

  // The values without a source.
  std::vector<std::string> missing() {
    require_all(profile_, {""});
    for (const auto& [kind, value] : profile_["network"].items())
      value.is_object() ? require_all(value, {"network." + kind + ".", "network.collectives."})
                        : require({"network." + kind});
    if (profile_.contains("device")) require_all(profile_["device"], {"device."});
    std::set<std::string> seen;
    for (const Json& model : profile_["models"]) {
      const std::string name = model["model"], own = "models." + name + ".";
      // Of a batch that is not the model's first, backward was not found in the same way.
      const bool first = seen.insert(name).second;
      for (const auto& [key, value] : model.items())
        if (key == "backward_ms" && !first)
          require({own + std::to_string(model["batch"].get<int>()) + "." + key});
        else
          require({own + key, "models." + key});
      for (const Json& codec : model["codecs"]) {
        const std::string setting = codec["codec"];
        std::vector<std::string> places;
        for (const std::string& place : {own + "codecs.", std::string("codecs.")})
          for (const std::string& one : {setting + ".", std::string()}) places.push_back(place + one);
        require_all(codec, places);
        for (const Json& round : codec["rounds"]) require_all(round, {"codecs.rounds."});
      }
    }
    return missing_;
  }

 private:
  void require_all(const Json& object, const std::vector<std::string>& places) {
    for (const auto& [key, value] : object.items()) {
      std::vector<std::string> keys;
      for (const std::string& place : places) keys.push_back(place + key);
      if (!value.is_object()) require(keys, key);
    }
  }

  // Any of the keys will do; `ms` and `gbps` are all of a place's that have the unit.
  void require(std::vector<std::string> keys, const std::string& last = "") {
    if (kNames.contains(last.empty() ? keys[0].substr(keys[0].rfind('.') + 1) : last)) return;
    for (const char* unit : {"ms", "gbps"})
      if (!last.empty() && last.ends_with(std::string("_") + unit))
        for (std::size_t i = 0, n = keys.size(); i < n; ++i)
          keys.push_back(keys[i].substr(0, keys[i].size() - last.size()) + unit);
    for (const std::string& key : keys)
      if (profile_["sources"].contains(key)) return;
    missing_.push_back(keys[0]);
  }

  Json profile_;
  std::vector<std::string> missing_;
};

Json profile_of(const std::string& machine) {
  std::ifstream file(std::filesystem::path(ACCORDION_SOURCE) / "profiles" / (machine + ".json"));
  return Json::parse(file);
}

class Profiles : public testing::TestWithParam<const char*> {};

TEST_P(Profiles, HaveASourceOfEachValue) {
  EXPECT_EQ(Sources(profile_of(GetParam())).missing(), std::vector<std::string>());
}

// Or the test above would not ask for it.
TEST_P(Profiles, MissEachSourceThatIsTakenAway) {
  const Json whole = profile_of(GetParam());
  for (const char* key :
       {"memory_gb", "network.bandwidth_gbps", "network.collectives.bandwidth_gbps",
        "network.collectives.latency_us", "models.rest_ms", "models.stretch", "models.slowdown",
        "models.resnet50.backward_ms", "models.resnet50.32.backward_ms", "models.resnet50.16.backward_ms",
        "models.resnet101.32.backward_ms", "codecs.extra_memory_bytes_per_parameter",
        "codecs.decode_ms_per_message", "codecs.rounds.bytes"}) {
    Json less = whole;
    ASSERT_EQ(less["sources"].erase(key), 1u) << key;
    EXPECT_FALSE(Sources(less).missing().empty()) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Profiles, testing::Values("p3.8xlarge-v100", "p3.8xlarge-v100-host"));

}  // namespace
}  // namespace accordion::perf
