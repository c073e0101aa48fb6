// The published verdicts on compression, from the profiles of the published machines: which of them come out, which turn when
// codecs run on the host, and how far each assumed value may be off.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>

#include "accordion/perf/advice.h"

namespace accordion::perf {
namespace {

const std::filesystem::path kProfiles = std::filesystem::path(ACCORDION_SOURCE) / "profiles";
constexpr double kGbps = 10;

// Hosts of four: from two of them on, as was published.
std::vector<int> published_workers() {
  std::vector<int> workers;
  for (int p = 8; p <= 96; p += 4) workers.push_back(p);
  return workers;
}

std::string rank(int r) {
  return "powersgd:approx-rank=" + std::to_string(r);
}

// Seconds of plain DDP that the method saves, as a part of them.
double saving(const Profile& profile, const std::string& model, int batch, bool published,
              const std::string& method, int workers) {
  const Case it{profile, find_model(profile, model, batch), published};
  return 1 - predict(it, method, workers, kGbps).step / predict(it, kPlain, workers, kGbps).step;
}

struct Verdict {
  std::string what;
  std::function<bool(const Profile&)> holds;
};

std::vector<Verdict> published_verdicts() {
  std::vector<Verdict> verdicts;
  const auto save = [](const Profile& profile, const std::string& model, int batch, const std::string& method,
                       int workers) { return saving(profile, model, batch, true, method, workers); };
  const auto never = [&](const std::string& model, int batch, const std::string& method) {
    verdicts.push_back({method + " never wins for " + model, [=](const Profile& profile) {
                          for (const int p : published_workers())
                            if (save(profile, model, batch, method, p) >= 0) return false;
                          return true;
                        }});
  };
  for (const char* model : {"resnet50", "resnet101"})
    for (const int r : {4, 8, 16}) never(model, 64, rank(r));
  never("resnet50", 64, "sign-vote");
  never("resnet101", 64, "sign-vote");
  never("bert-base", 16, "sign-vote");
  for (const int r : {4, 8})
    verdicts.push_back({rank(r) + " wins for BERT on 96 GPUs", [=](const Profile& profile) {
                          return save(profile, "bert-base", 16, rank(r), 96) > 0;
                        }});
  verdicts.push_back({"rank 16 does not win for BERT on 96 GPUs", [=](const Profile& profile) {
                        return save(profile, "bert-base", 16, rank(16), 96) < 0;
                      }});
  for (const char* model : {"resnet50", "resnet101"})
    verdicts.push_back(
        {std::string("smaller batches favour compression, ") + model, [=](const Profile& profile) {
           return save(profile, model, 32, rank(4), 96) > save(profile, model, 64, rank(4), 96);
         }});
  return verdicts;
}

// With codecs on the host, overlapped.
std::vector<Verdict> host_verdicts() {
  std::vector<Verdict> verdicts;
  const auto save = [](const Profile& profile, const std::string& model, int batch, const std::string& method,
                       int workers) { return saving(profile, model, batch, false, method, workers); };
  for (const auto& [model, batch] :
       {std::pair("resnet50", 64), std::pair("resnet101", 64), std::pair("bert-base", 16)})
    for (const int r : {4, 8, 16})
      verdicts.push_back({rank(r) + " wins for " + model, [=](const Profile& profile) {
                            for (const int p : {8, 16, 32, 64, 96})
                              if (save(profile, model, batch, rank(r), p) <= 0) return false;
                            return true;
                          }});
  for (const auto& [model, batch] :
       {std::pair("resnet50", 64), std::pair("resnet101", 64), std::pair("bert-base", 16)})
    verdicts.push_back(
        {std::string("signs win on two hosts and lose on eight, ") + model, [=](const Profile& profile) {
           return save(profile, model, batch, "sign-vote", 8) > 0 &&
                  save(profile, model, batch, "sign-vote", 32) < 0;
         }});
  return verdicts;
}

std::string broken(const std::vector<Verdict>& verdicts, const Profile& profile) {
  for (const Verdict& verdict : verdicts)
    if (!verdict.holds(profile)) return verdict.what;
  return "none";
}

// A value that may be off, by the key that the profile's sources have it under.
struct Assumed {
  std::string key;
  std::function<double(const Profile&)> value;
  std::function<void(Profile&, double factor)> scale;
  std::string origin = "assumed";
};

CodecProfile& codec_of(ModelProfile& model, const std::string& codec) {
  return const_cast<CodecProfile&>(find_codec(model, codec));
}

void each_model(Profile& profile, const std::string& model, const std::function<void(ModelProfile&)>& use) {
  for (ModelProfile& each : profile.models)
    if (each.model == model) use(each);
}

Assumed backward_of(const std::string& model) {
  return {"models." + model + ".backward_ms",
          [=](const Profile& profile) { return find_model(profile, model).backward_ms; },
          [=](Profile& profile, double factor) {
            each_model(profile, model, [&](ModelProfile& each) { each.backward_ms *= factor; });
          }};
}

Assumed codec_time(const std::string& model, const std::string& codec,
                   const std::string& origin = "assumed") {
  return {"models." + model + ".codecs." + codec + ".ms",
          [=](const Profile& profile) {
            const CodecProfile& it = find_codec(find_model(profile, model), codec);
            return it.encode_ms + it.decode_ms;
          },
          [=](Profile& profile, double factor) {
            each_model(profile, model, [&](ModelProfile& each) {
              codec_of(each, codec).encode_ms *= factor;
              codec_of(each, codec).decode_ms *= factor;
            });
          },
          origin};
}

Assumed decode_of_a_message(const std::string& model) {
  return {"models." + model + ".codecs.sign-vote.decode_ms_per_message",
          [=](const Profile& profile) {
            return find_codec(find_model(profile, model), "sign-vote").decode_ms_per_message;
          },
          [=](Profile& profile, double factor) {
            each_model(profile, model, [&](ModelProfile& each) {
              codec_of(each, "sign-vote").decode_ms_per_message *= factor;
            });
          }};
}

Assumed latency() {
  return {"network.collectives.latency_us",
          [](const Profile& profile) { return profile.network.dense->piece.latency_us; },
          [](Profile& profile, double factor) {
            for (CollectiveProfile& each : profile.network.collectives) each.piece.latency_us *= factor;
            profile.network.dense->piece.latency_us *= factor;
          }};
}

Assumed slowdown() {  // By its distance from 1.
  return {"models.slowdown", [](const Profile& profile) { return profile.models[0].slowdown; },
          [](Profile& profile, double factor) {
            for (ModelProfile& each : profile.models) each.slowdown = 1 + (each.slowdown - 1) * factor;
          }};
}

Assumed copies() {
  return {"device.gbps", [](const Profile& profile) { return profile.device->to_host_gbps; },
          [](Profile& profile, double factor) {
            profile.device->to_host_gbps *= factor;
            profile.device->to_device_gbps *= factor;
          }};
}

// Of the factors from 1/8 to 8, those next to 1 within which all verdicts hold.
Range range_of(const Assumed& assumed, const Profile& profile, const std::vector<Verdict>& verdicts) {
  const auto holds = [&](double factor) {
    Profile changed = profile;
    assumed.scale(changed, factor);
    return broken(verdicts, changed) == "none" ? 1.0 : -1.0;
  };
  Range range{1.0 / 8, 8};
  for (const double turn : turning_points(holds, {1.0 / 8, 8})) {
    if (turn < 1) range.low = turn;
    if (turn > 1) return {range.low, turn};
  }
  return range;
}

double value_at(const Assumed& assumed, Profile profile, double factor) {
  assumed.scale(profile, factor);
  return assumed.value(profile);
}

std::string stated(const Assumed& assumed, const Profile& profile, const Range& range) {
  const auto text = [](double value, int towards) {  // Rounded inwards, so that it holds at what is written.
    const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.6g",
                  (towards > 0 ? std::ceil(value / unit) : std::floor(value / unit)) * unit);
    return std::string(digits);
  };
  const bool below = range.low <= 0.126, above = range.high >= 7.99;
  const std::string low = text(value_at(assumed, profile, range.low), 1),
                    high = text(value_at(assumed, profile, range.high), -1);
  if (below && above) return assumed.origin + "; the verdicts hold from an eighth to eight times of it";
  if (below) return assumed.origin + "; the verdicts hold up to " + high;
  if (above) return assumed.origin + "; the verdicts hold from " + low + " on";
  return assumed.origin + "; the verdicts hold from " + low + " to " + high;
}

void expect_stated_ranges(const Profile& profile, const std::vector<Verdict>& verdicts,
                          const std::vector<Assumed>& values) {
  for (const Assumed& assumed : values) {
    const std::string text = stated(assumed, profile, range_of(assumed, profile, verdicts));
    const auto found = profile.sources.find(assumed.key);
    if (found == profile.sources.end())
      ADD_FAILURE() << "\"" << assumed.key << "\": \"" << text << "\"";
    else
      EXPECT_EQ(found->second, text) << assumed.key;
  }
}

Profile on_the_gpu() {
  return read_profile(kProfiles / "p3.8xlarge-v100.json");
}
Profile on_the_host() {
  return read_profile(kProfiles / "p3.8xlarge-v100-host.json");
}

TEST(Utility, PublishedVerdictsComeOut) {
  const Profile profile = on_the_gpu();
  for (const Verdict& verdict : published_verdicts()) EXPECT_TRUE(verdict.holds(profile)) << verdict.what;
  EXPECT_NEAR(saving(profile, "bert-base", 16, true, rank(4), 96), 0.188, 0.01);
  EXPECT_NEAR(saving(profile, "bert-base", 16, true, rank(8), 96), 0.113, 0.01);
}

TEST(Utility, NoMethodOfTheTableWinsForResNet50) {
  const Profile profile = on_the_gpu();
  const Case it{profile, find_model(profile, "resnet50", 64), true};
  ASSERT_EQ(methods(it).size(), 12u);
  for (const std::string& method : methods(it)) {
    if (method == kPlain) continue;
    for (const int p : published_workers())
      EXPECT_LT(saving(profile, "resnet50", 64, true, method, p), 0) << method;
  }
}

TEST(Utility, AssumedValuesMayBeOffByThis) {
  std::vector<Assumed> values{latency(), slowdown()};
  for (const char* model : {"resnet50", "resnet101", "bert-base"}) {
    values.push_back(backward_of(model));
    values.push_back(decode_of_a_message(model));
    for (const int r : {4, 8, 16})
      if (model != std::string("resnet50") || r != 4)
        values.push_back(codec_time(model, rank(r)));  // That is published.
  }
  expect_stated_ranges(on_the_gpu(), published_verdicts(), values);
}

TEST(Utility, VerdictsTurnWithCodecsOnTheHost) {
  const Profile profile = on_the_host();
  for (const Verdict& verdict : host_verdicts()) EXPECT_TRUE(verdict.holds(profile)) << verdict.what;
  // Beside plain DDP as the published formula has it, which is a shorter step, too.
  for (const auto& [model, batch] :
       {std::pair("resnet50", 64), std::pair("resnet101", 64), std::pair("bert-base", 16)})
    for (const int p : published_workers()) {
      const Case ours{profile, find_model(profile, model, batch)},
          theirs{profile, find_model(profile, model, batch), true};
      EXPECT_LT(predict(ours, rank(4), p, kGbps).step, predict(theirs, kPlain, p, kGbps).step) << model << p;
    }
}

TEST(Utility, AssumedValuesOfTheHostMayBeOffByThis) {
  std::vector<Assumed> values{latency(), copies()};
  for (const char* model : {"resnet50", "resnet101", "bert-base"}) {
    values.push_back(backward_of(model));
    for (const int r : {4, 8, 16})
      values.push_back(
          codec_time(model, rank(r), r == 4 && model == std::string("resnet50") ? "measured" : "assumed"));
  }
  expect_stated_ranges(on_the_host(), host_verdicts(), values);
}

}  // namespace
}  // namespace accordion::perf
