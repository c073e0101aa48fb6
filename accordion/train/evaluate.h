// Loss and accuracy over a data set, sharded over ranks: every sample once, whatever the number of ranks.
#pragma once

#include "accordion/comm/communicator.h"
#include "accordion/data/dataset.h"
#include "accordion/models/network.h"

namespace accordion {

struct Evaluation {
  double loss;      // mean over samples
  double accuracy;  // a fraction
};

Evaluation evaluate(Network& model, const ImageSet& data, const Images& images, Communicator& control);

}  // namespace accordion
