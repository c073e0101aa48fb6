// Batches of nothing in particular, of any kind: what a model is timed and tested with.
#pragma once

#include <torch/torch.h>

#include "accordion/data/input_shape.h"

namespace accordion {

struct MadeUpBatch {
  torch::Tensor input, targets;
};

// From torch's generator. Of text: `samples` streams of `positions` tokens, each target the token that
// follows. A stream begins with a word of its own, if there are as many, so that what follows can be learnt.
MadeUpBatch made_up(const ImageShape& shape, int samples, int positions = 1);
MadeUpBatch made_up(const TextShape& shape, int samples, int positions = 6);
MadeUpBatch made_up(const TableShape& shape, int samples, int positions = 1);
MadeUpBatch made_up(const InputShape& shape, int samples, int positions = 6);

}  // namespace accordion
