#include <map>

#include "accordion/adapt/control.h"
#include "accordion/adapt/schedule.h"
#include "accordion/base/json.h"
#include "accordion/compress/codec_cases_testing.h"
#include "accordion/launch/place.h"
#include "accordion/launch/settings.h"
#include "accordion/run/options.h"
#include "cli/comparison_recipe.h"
#include "fuzz/targets.h"

namespace accordion::fuzz {
namespace {

void parse_codec_setting(std::string_view input) {
  const CodecOptions codec = parse_codec(input);
  require_same(codec_text(codec), codec_text(parse_codec(codec_text(codec))), "a codec setting");
  const CodecOptions levels[] = {codec};
  check_levels(levels);
  make_compressor(codec, Shape{{40, 30}}, 3, {.published = true});
}

void parse_options(std::string_view input) {
  TrainOptions options;
  from_json(parse_json(input, "options"), options);
  check_train_options(options);
  check_workers(options, 2);
  train_warnings(options);
  learning_rate(options, 3.5);
}

void parse_recipe(std::string_view input) {
  TrainOptions train;
  cli::LaunchOptions launch;
  cli::apply_recipe(scratch("recipe.toml", input).string(), train, launch);
  const std::string text = cli::recipe_text(train);
  TrainOptions again;
  cli::apply_recipe(scratch("again.toml", text).string(), again);
  require_same(text, cli::recipe_text(again), "a recipe");
}

void parse_comparison(std::string_view input) {
  cli::read_comparison(scratch("recipe.toml", input).string(), {},
                       [](const cli::SettingOptions& options) { check_train_options(options.train); });
}

// A NAME=VALUE a line.
void parse_environment(std::string_view input) {
  std::map<std::string, std::string, std::less<>> variables;
  while (!input.empty()) {
    const std::string line(input.substr(0, input.find('\n')));
    input.remove_prefix(std::min(input.size(), line.size() + 1));
    if (const std::size_t equals = line.find('='); equals != std::string::npos)
      variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  const GetVariable get = [&](const char* name) -> const char* {
    const auto found = variables.find(std::string_view(name));
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  worker_environment(2, get);
  const auto place = place_from_environment(get);
  if (!place) return;
  threads_of_rank(*place, get);
  const auto text = [](const Place& it) {
    std::string all;
    for (const auto& [name, value] : place_environment(it)) all += name + "=" + value + "\n";
    return all;
  };
  const auto told = place_environment(*place);
  const auto again = place_from_environment([&](const char* name) -> const char* {
    const auto found = told.find(name);
    return found == told.end() ? nullptr : found->second.c_str();
  });
  require_same(text(*place), text(*again), "a place");
}

std::vector<std::string> codec_settings() {
  std::vector<std::string> settings;
  for (const auto& entry : testing_codecs::codec_entries())
    for (const auto& own : entry.cases) settings.push_back(own.setting);
  return settings;
}

}  // namespace

std::vector<Target> setting_targets() {
  TrainOptions controlled;
  controlled.control = {
      .controller = "lgreco", .mild = "powersgd:approx-rank=4", .strong = "powersgd:approx-rank=1"};
  controlled.schedule = "step";
  controlled.milestones = {3, 5};
  return {
      {"json",
       {R"({"a":[1,-2.5e3,true,null,"\u00e9\\"],"b":{}})", "[3,7,255]"},
       [](auto in) {
         const std::string text = parse_json(in, "text").dump();
         require_same(text, parse_json(text, "again").dump(), "JSON");
       }},
      {"codec", codec_settings(), parse_codec_setting},
      {"plan", {"critical", "mild@0-20,1@30-40,strong"}, [](auto in) { parse_plan(in, 3); }},
      {"options", {to_json(TrainOptions{}).dump(), to_json(controlled).dump()}, parse_options},
      {"recipe", {"epochs = 3 # some\nmilestones = []\n", cli::recipe_text(controlled)}, parse_recipe},
      {"comparison",
       {source_file("recipes/demo.toml"), "seeds = [1, 2]\n[a]\nlr = 0.1\n[\"b c\"]\ncodec = 'topk'\n"},
       parse_comparison},
      {"environment",
       {"RANK=1\nWORLD_SIZE=4\nLOCAL_RANK=1\nLOCAL_WORLD_SIZE=2\nMASTER_ADDR=10.0.0.1\nMASTER_PORT="
        "29500\nOMP_NUM_THREADS=2,1",
        "RANK=0\nWORLD_SIZE=1\nTORCHELASTIC_USE_AGENT_STORE=True\nTORCHELASTIC_RESTART_COUNT=2\nMASTER_ADDR=:"
        ":1\nMASTER_PORT=1",
        "OMPI_COMM_WORLD_RANK=1\nOMPI_COMM_WORLD_SIZE=2\nOMPI_COMM_WORLD_LOCAL_RANK=1\nOMPI_COMM_WORLD_LOCAL_"
        "SIZE=2",
        "PMI_RANK=0\nPMI_SIZE=2\nMPI_LOCALRANKID=0\nMPI_LOCALNRANKS=2",
        "SLURM_PROCID=3\nSLURM_NTASKS=4\nSLURM_LOCALID=1\nSLURM_STEP_ID=0\nSLURM_STEP_NUM_NODES=2\nSLURM_"
        "STEP_NODELIST=node[03-05,9],login1"},
       parse_environment},
      {"node-list", {"node[03-05,9],login1", "a,b", "rack[1-2]-node[3,4]"}, [](auto in) { first_host(in); }},
  };
}

}  // namespace accordion::fuzz
