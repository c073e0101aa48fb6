// Runs a sequence of gradients through the exchange, so that another implementation can be held against it.
//
// replay PLAN GRADIENTS MEANS RESIDUALS
//
// PLAN, JSON: `ranks`, `seed`, `codecs` (settings), `shapes` (one a tensor), `steps` (for each, a codec's
// place in the list for each tensor). Everything of two dimensions or more is compressed.
// GRADIENTS: f32[steps][ranks][elements], the tensors one after the other. Written are MEANS and RESIDUALS,
// the same as GRADIENTS; a residual that is not there is 0.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "accordion/base/json.h"
#include "accordion/base/options.h"
#include "accordion/comm/loopback.h"
#include "accordion/exchange/exchange.h"

namespace {

using namespace accordion;

std::ifstream open(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(std::string("replay: cannot read ") + path);
  return file;
}

void write(const char* path, const std::vector<float>& values) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
  if (!out.flush()) throw std::runtime_error(std::string("replay: cannot write ") + path);
}

void replay(char** paths) {
  const Json plan = Json::parse(open(paths[0]));
  const int ranks = plan.at("ranks");
  ExchangeOptions options{.levels = {}, .routing = {.published = true}, .seed = plan.at("seed")};
  for (const std::string setting : plan.at("codecs")) options.levels.push_back(parse_codec(setting));
  std::vector<TensorInfo> tensors;
  std::vector<Slice> slices;
  std::size_t size = 0;
  for (const auto& dims : plan.at("shapes")) {
    const Shape shape{dims};
    slices.push_back({static_cast<int>(tensors.size()), size, shape.count()});
    tensors.push_back({"tensor" + std::to_string(tensors.size()), shape});
    size += shape.count();
  }
  const std::vector<std::vector<int>> steps = plan.at("steps");

  std::vector<float> gradients(steps.size() * static_cast<std::size_t>(ranks) * size);
  std::vector<float> residuals(gradients.size());
  const auto bytes = static_cast<std::streamsize>(gradients.size() * sizeof(float));
  if (!open(paths[1]).read(reinterpret_cast<char*>(gradients.data()), bytes))
    throw std::runtime_error("replay: the gradients end early");

  run_loopback(ranks, [&](Communicator& comm) {
    Exchange exchange(comm, tensors, options);
    for (std::size_t step = 0; step < steps.size(); ++step) {
      exchange.set_levels(steps[step]);
      const std::size_t place =
          step * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(comm.rank());
      exchange.mean(std::span(gradients).subspan(place * size, size), slices);
      if (!exchange.end_step())
        throw std::runtime_error("replay: step " + std::to_string(step) + " is not finite");
      State state;
      exchange.save_state(StateWriter(state));
      for (const Slice& slice : slices) {
        const std::string& tensor = tensors[static_cast<std::size_t>(slice.tensor)].name;
        const auto& residual = std::get<std::vector<float>>(state.at(tensor + "/residual"));
        std::copy(residual.begin(), residual.end(), residuals.data() + place * size + slice.offset);
      }
    }
  });
  write(paths[2], gradients);  // Means took the gradients' places.
  write(paths[3], residuals);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5) throw std::runtime_error("usage: replay PLAN GRADIENTS MEANS RESIDUALS");
  replay(argv + 1);
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
