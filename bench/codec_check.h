// Whether a codec's result is right: a benchmark of wrong results is worth nothing.
#pragma once

#include <string>

#include "bench/codec_group.h"

namespace accordion::bench {

// Throws an Error that names codec and tensor.
void check_step(const CodecOptions& codec, const TensorInfo& info, const GroupStep& group);

}  // namespace accordion::bench
