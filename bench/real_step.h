// Steps of the C++ DDP on made-up samples, from forward to optimizer, with no guard: each with the codec that it was given.
#pragma once

#include <memory>
#include <string>

#include "accordion/comm/group.h"
#include "bench/models.h"

namespace accordion::bench {

class RealSteps {
 public:
  RealSteps(Group& group, const ModelCase& model, const std::string& codec, int threads);
  ~RealSteps();
  RealSteps(RealSteps&&) noexcept;

  void step();

 private:
  struct Training;
  std::unique_ptr<Training> training_;
};

// Takes one after all ranks have come so far. Seconds of the slowest rank.
double slowest_step(RealSteps& steps, Communicator& control);

}  // namespace accordion::bench
