// Gradients as training has them: heavy tails, a scale of their own for each layer, and between ranks a part
// in common. Deterministic.
#pragma once

#include <span>
#include <vector>

namespace accordion::bench {

class Gradients {
 public:
  Gradients();

  // The layer's typical magnitude.
  static float scale(int tensor);

  // One rank's gradient of a step.
  void fill(int tensor, int rank, int step, std::span<float> gradient) const;

 private:
  std::vector<float> common_, own_;
};

}  // namespace accordion::bench
