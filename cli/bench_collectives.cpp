// accordion bench collectives: starts --workers ranks on this machine, or is itself one rank of a group that netlab,
// torchrun, mpirun or srun started.
#include <cstdio>
#include <iostream>
#include <optional>

#include "accordion/base/json.h"
#include "accordion/comm/c10d_group.h"
#include "bench/collectives.h"
#include "cli/fields.h"
#include "cli/local_ranks.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

struct Arguments : bench::CollectivesOptions {
  int workers = 4;
  bool json = false;

  void fields(auto&& field) {
    bench::CollectivesOptions::fields(field);
    field("workers", workers, "Ranks to start on this machine.", at_least(1).up_to(64));
    field("json", json, "One JSON object on standard output.");
  }
};

Json to_json(const bench::CollectiveTiming& timing) {
  Json row = {{"operation", timing.operation},         {"bytes", timing.bytes},
              {"repetitions", timing.repetitions},     {"ms", timing.ms},
              {"algorithm_gbs", timing.algorithm_gbs}, {"bus_gbs", timing.bus_gbs},
              {"sent_bytes", timing.sent_bytes}};
  if (timing.gloo_ms > 0)
    row.update({{"gloo_ms", timing.gloo_ms},
                {"ratio", timing.ratio.value},
                {"ratio_low", timing.ratio.low},
                {"ratio_high", timing.ratio.high}});
  return row;
}

void print(const bench::CollectiveTiming& timing) {
  std::printf("%-9s %10zu %12.3f %9.3f %9.3f", timing.operation.c_str(), timing.bytes, timing.ms,
              timing.algorithm_gbs, timing.bus_gbs);
  if (timing.gloo_ms > 0)
    std::printf(" %12.3f %7.3f   %.3f to %.3f", timing.gloo_ms, timing.ratio.value, timing.ratio.low,
                timing.ratio.high);
  std::printf("\n");
  std::fflush(stdout);
}

// What each rank has handed to the network so far, on every rank.
std::vector<std::uint64_t> sent_by_all(Group& group) {
  const std::uint64_t mine = group.gradients().sent_bytes() + group.control().sent_bytes();
  std::vector<std::uint64_t> all(static_cast<std::size_t>(group.size()));
  group.control().gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

int run_rank(const Arguments& arguments, const Place& place) {
  Rendezvous meeting = rendezvous_at(place);
  Group group = c10d_group(meeting);
  meeting.prefix += "/gloo";
  std::optional<Group> gloo;
  if (arguments.gloo) gloo = gloo_group(meeting);
  const bool shows = group.rank() == 0 && !arguments.json;
  if (shows)
    std::printf("%d ranks. Times of the slowest, medians.\n%-9s %10s %12s %9s %9s %12s %7s %16s\n",
                group.size(), "", "bytes", "ms", "alg GB/s", "bus GB/s", "Gloo ms", "ratio", "95 % interval");
  Json rows = Json::array();
  for (const std::string& operation : bench::operations_of(arguments))
    for (const std::size_t bytes : bench::sizes_of(arguments)) {
      const auto timing = bench::time_collective(group, gloo ? &*gloo : nullptr, operation, bytes, arguments);
      if (shows) print(timing);
      rows.push_back(to_json(timing));
    }
  const std::vector<std::uint64_t> sent = sent_by_all(group);
  if (group.rank() == 0 && arguments.json)
    std::cout << Json{{"ranks", group.size()}, {"rows", rows}, {"total_sent_bytes", sent}}.dump(2)
              << std::endl;
  if (shows)
    std::printf(
        "Verified before timing. Sizes and bandwidths as nccl-tests define them; a gather's size is what a "
        "rank\n"
        "holds afterwards. Ratio below 1: faster than Gloo's all-reduce.\n");
  return 0;
}

}  // namespace

std::pair<CLI::App*, Run> add_bench_collectives(CLI::App& bench, char** argv) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb =
      bench.add_subcommand("collectives", "Sums, gathers, scatters and broadcasts beside Gloo's all-reduce.");
  add_fields(*verb, "bench collectives", *arguments);
  return {verb, [arguments, argv] {
            bench::operations_of(*arguments);
            return run_in_group(arguments->workers, argv,
                                [&](const Place& place, int) { return run_rank(*arguments, place); });
          }};
}

}  // namespace accordion::cli
