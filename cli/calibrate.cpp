// accordion calibrate: measures network, model and codecs on the group it is started in, and writes a profile.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "accordion/base/error.h"
#include "accordion/comm/c10d_group.h"
#include "accordion/compress/codecs.h"
#include "accordion/launch/settings.h"
#include "accordion/log/write_file.h"
#include "accordion/perf/step.h"
#include "accordion/run/recorder.h"
#include "bench/calibrate_check.h"
#include "bench/calibrate_codec.h"
#include "bench/calibrate_device.h"
#include "bench/calibrate_memory.h"
#include "bench/calibrate_model.h"
#include "bench/calibrate_network.h"
#include "bench/calibrate_pairs.h"
#include "bench/digits.h"
#include "cli/fields.h"
#include "cli/local_ranks.h"
#include "cli/split.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

std::string default_codecs() {
  std::vector<std::string> settings = usual_settings();
  settings.insert(settings.end(), {"powersgd:approx-rank=1", "powersgd:approx-rank=2"});  // As published.
  std::string text = settings[0];
  for (std::size_t i = 1; i < settings.size(); ++i) text += ";" + settings[i];
  return text;
}

struct CalibrateOptions {
  std::string model = "resnet20";
  int batch = 0, workers = 4;
  std::string codecs = default_codecs();
  std::string device = "cpu", out = "profile.json";
  double seconds = 45, bandwidth = 0;
  bool check = false;

  void fields(auto&& field) {
    field("model", model, "A setting (accordion models).");
    field("batch", batch, "Samples per worker; 0: as many as are usual for the model.",
          at_least(0).up_to(65536));
    field("workers", workers, "Ranks to start on this machine.", at_least(2).up_to(64));
    field("device", device,
          "Where the model computes: cpu, cuda, cuda:1, or another device of torch's; copies from and to it "
          "are timed too.");
    field("codecs", codecs,
          "Settings, separated by semicolons. Not among those of the default is what takes minutes: ATOMO.");
    field("out", out, "The profile's file.");
    field("seconds", seconds, "For all of it, roughly; slow links and large models take what they need.",
          at_least(1).up_to(3600));
    field("bandwidth", bandwidth, "Gbit/s at which the links are said to run; 0: what sums reach.",
          at_least(0).up_to(1e6));
    field(
        "check", check,
        "Take real steps too, with no codec and with each, and print them beside what the profile predicts.");
  }
};

void print_calibrated_network(const perf::NetworkProfile& network) {
  std::printf("%d ranks, %d a host; links run at %.4g Gbit/s.\n%-10s %12s %12s %10s\n", network.ranks,
              network.ranks_per_host, network.bandwidth_gbps, "", "latency us", "Gbit/s", "R squared");
  const char* const names[] = {"sums", "gathers", "scatters"};
  for (std::size_t i = 0; i < perf::kCollectives; ++i) {
    const perf::CollectiveProfile& each = network.collectives[i];
    std::printf("%-10s %12.4g %12.4g %10.4f", names[i], each.piece.latency_us, each.piece.bandwidth_gbps,
                each.r_squared);
    if (each.small)
      std::printf("   below %.4g bytes: %.4g us, %.4g Gbit/s", each.small_below_bytes, each.small->latency_us,
                  each.small->bandwidth_gbps);
    std::printf("\n");
  }
}

// A link that is half as fast as the others holds up every collective.
void print_pairs(const bench::Pairs& pairs) {
  if (pairs.count < 2) return;
  std::printf(
      "Of %d pairs of ranks, one after the other, the slowest is %d and %d with %.4g Gbit/s each way, the "
      "middle one has %.4g%s.\n",
      pairs.count, pairs.slowest[0], pairs.slowest[1], pairs.slowest_gbps, pairs.middle_gbps,
      pairs.slowest_gbps < pairs.middle_gbps / 2
          ? ", more than twice as much: collectives wait for the slow one"
          : "");
}

void print_calibrated_model(const perf::ModelProfile& model, int ranks, bool measured_sums) {
  std::printf(
      "\n%s, batch %d: backward %.4g ms, the rest of a step %.4g ms; a second of encoding delays backward by "
      "%.3g s",
      model.model.c_str(), model.batch, model.backward_ms, model.rest_ms, model.stretch);
  if (measured_sums)
    std::printf(", a megabyte sent by %.3g ms; beside backward messages take %.3g times as long",
                model.delay_ms_per_mb, model.crowding);
  std::printf(".\nBuckets (ready at ms, elements):");
  for (const perf::BucketProfile& bucket : model.buckets)
    std::printf(" %.4g, %lld;", bucket.ready_ms, static_cast<long long>(bucket.elements));
  std::printf("\n%-24s %10s %10s %12s %14s %16s\n", "codec", "encode ms", "decode ms", "+ a message",
              "bytes sent", "memory, B/param");
  for (const perf::CodecProfile& codec : model.codecs) {
    double sent = 0;
    for (const perf::RoundProfile& round : codec.rounds)
      sent += perf::wire_bytes(round.collective, round.bytes, ranks);
    std::printf("%-24s %10.4g %10.4g %12.4g %14.0f %16.4g\n", codec.codec.c_str(), codec.encode_ms,
                codec.decode_ms, codec.decode_ms_per_message, sent, codec.extra_memory_bytes_per_parameter);
  }
}

double predicted_ms(const perf::Profile& profile, const std::string& codec) {
  const perf::StepModel step = perf::step_model(profile, profile.models[0], codec, profile.network.ranks,
                                                profile.network.bandwidth_gbps);
  const std::vector<int> levels(step.layers.size(), codec == "none" ? perf::kDense : 0);
  return 1e3 * perf::step_seconds(step, levels);
}

void print_check(const perf::Profile& profile, const std::vector<std::string>& codecs,
                 const std::vector<Median>& measured) {
  std::printf("\n%-24s %13s %13s %18s %9s\n", "a step", "predicted ms", "measured ms", "95 % interval",
              "ratio");
  for (std::size_t i = 0; i < codecs.size(); ++i) {
    const double predicted = predicted_ms(profile, codecs[i]);
    std::printf("%-24s %13.4g %13.4g %8.4g to %6.4g %9.3f\n", codecs[i].c_str(), predicted, measured[i].value,
                measured[i].low, measured[i].high, predicted / measured[i].value);
  }
}

// Real steps that send next to nothing, and so take what a step takes besides its parts: threads that change places, ranks that
// wait for each other, or for their turn where they share cores.
constexpr const char* kNextToNothing = "randomk:keep=0.0001";

void settle_rest(Group& group, const bench::ModelCase& model, const bench::ModelCalibration& calibration,
                 perf::Profile& profile) {
  const double measured = bench::measure_steps(group, model, {kNextToNothing}, calibration)[0].value;
  double& rest_ms = profile.models[0].rest_ms;
  rest_ms = bench::digits(std::max(0.0, rest_ms + measured - predicted_ms(profile, kNextToNothing)));
}

int calibrate_rank(const CalibrateOptions& options, const bench::ModelCase& model, const Place& place,
                   int threads) {
  Group group = c10d_group(rendezvous_at(place));
  if (group.size() < 2)
    throw UsageError("calibrate: 1 rank, expected at least 2: there is no network to measure");
  const bench::Progress progress = [&](const std::string& what) {
    if (group.rank() == 0) std::fprintf(stderr, "calibrate: %s\n", what.c_str());
  };
  // Ranks of a single machine are as far from each other as they get there: each counts as a host of its own.
  const int per_host = place.local_world < place.world ? place.local_world : 1;
  const std::vector<std::string> codecs = split(options.codecs, ';');
  perf::Profile profile;
  profile.machine = cpu_model() + ", " + std::to_string(available_cores()) + " cores, " +
                    std::to_string(threads) + " threads a rank";
  const c10::Device device = bench::device_of(options.device, place.local_rank);
  progress("backward of " + model.model + " with a batch of " + std::to_string(model.batch));
  bench::MeasuredModel measured = bench::measure_model(
      group.control(), model, {.seconds = options.seconds / 3, .threads = threads, .device = device});
  if (!device.is_cpu()) {
    progress("copies from and to " + device.str());
    profile.device =
        bench::measure_copies(group.control(), device, measured.profile.buckets, options.seconds / 10);
  }
  std::int64_t largest = 0;
  for (const perf::BucketProfile& bucket : measured.profile.buckets)
    largest = std::max(largest, bucket.elements);
  profile.network = bench::measure_network(group,
                                           {.seconds = options.seconds / 3,
                                            .ranks_per_host = per_host,
                                            .sum_bytes = static_cast<std::size_t>(largest) * sizeof(float),
                                            .bandwidth_gbps = options.bandwidth},
                                           progress);
  if (device.is_cpu()) {
    progress("backward beside sums");
    const perf::Link link = perf::link_of(profile, group.size(), profile.network.bandwidth_gbps);
    const bench::SumsBesideBackward beside = bench::measure_sums_beside_backward(
        group, model, link[perf::Collective::kSum], {.seconds = options.seconds / 8, .threads = threads});
    measured.profile.delay_ms_per_mb = bench::digits(1e9 * beside.delay, 3);
    measured.profile.crowding = bench::digits(beside.crowding, 3);
  }
  progress("pairs of ranks");
  const bench::Pairs pairs =
      bench::measure_pairs(group, profile.network[perf::Collective::kSum].piece.bandwidth_gbps);
  const auto measure_codec = [&](const std::string& codec) {
    return bench::measure_codec(group.control(), codec, measured.tensors, measured.gradients,
                                {.seconds = options.seconds / 3 / static_cast<double>(codecs.size() + 1),
                                 .threads = threads,
                                 .buckets = measured.profile.buckets.size()});
  };
  for (const std::string& codec : codecs) {
    progress(codec);
    measured.profile.codecs.push_back(measure_codec(codec));
  }
  profile.memory_gb = bench::measure_memory_gb(group.control(), place.local_world);
  const perf::CodecProfile least = measure_codec(kNextToNothing);
  profile.models.push_back(std::move(measured.profile));
  if (device.is_cpu()) {
    progress("steps that send next to nothing");
    std::vector<perf::CodecProfile>& listed = profile.models[0].codecs;
    listed.insert(listed.begin(), least);
    settle_rest(group, model, {.seconds = options.seconds / 6, .threads = threads}, profile);
    listed.erase(listed.begin());
  }
  profile.sources = {{"network", "measured by accordion calibrate"},
                     {"network.bandwidth_gbps", options.bandwidth > 0 ? "as given" : "what sums reach"},
                     {"models", "measured by accordion calibrate, on made-up samples"}};
  if (profile.memory_gb)
    profile.sources["memory_gb"] = "half of what the host had available, shared by its ranks";
  if (profile.device)
    profile.sources["device"] = "measured by accordion calibrate, with this model's buckets";
  std::vector<std::string> checked = {"none"};
  std::vector<Median> steps;
  if (options.check) {
    for (const std::string& codec : codecs)
      if (codec != "none") checked.push_back(codec);
    progress("real steps");
    steps = bench::measure_steps(group, model, checked, {.seconds = options.seconds / 2, .threads = threads});
  }
  if (group.rank() != 0) return 0;
  const std::string text = perf::profile_text(profile);
  perf::parse_profile(text, options.out);  // A number that no reader would take is better met here.
  write_whole(options.out, text);
  print_calibrated_network(profile.network);
  print_pairs(pairs);
  print_calibrated_model(profile.models[0], group.size(), device.is_cpu());
  if (profile.device)
    std::printf("\nCopies of its buckets, %.4g Gbit/s from %s and %.4g to it.\n",
                profile.device->to_host_gbps, device.str().c_str(), profile.device->to_device_gbps);
  if (profile.memory_gb)
    std::printf("\n%.3g GB of memory a rank for gathered messages.\n", *profile.memory_gb);
  if (options.check) print_check(profile, checked, steps);
  std::printf("\n%s\n", options.out.c_str());
  return 0;
}

}  // namespace

Run add_calibrate(CLI::App& verb, char** argv) {
  auto options = std::make_shared<CalibrateOptions>();
  add_fields(verb, "calibrate", *options);
  return [options, argv] {
    // What cannot be is refused before anything is started.
    const bench::ModelCase model = bench::model_cases({options->model}, "", options->batch).at(0);
    if (!bench::device_of(options->device).is_cpu() && options->check)
      throw UsageError("calibrate: check with device=" + options->device +
                       ", expected device=cpu: the steps it takes are in host memory");
    for (const std::string& codec : split(options->codecs, ';'))
      check_ranks(std::vector{parse_codec(codec)}, options->workers);
    const std::filesystem::path folder = std::filesystem::absolute(options->out).parent_path();
    if (!std::filesystem::is_directory(folder))
      throw UsageError("calibrate: out=" + options->out + ", expected a file in a folder that is there");
    return run_in_group(options->workers, argv, [&](const Place& place, int threads) {
      return calibrate_rank(*options, model, place, threads);
    });
  };
}

}  // namespace accordion::cli
