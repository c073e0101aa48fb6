// Whether a codec's result is right: a benchmark of wrong results is worth nothing.
#pragma once

#include <string>

#include "bench/codec_group.h"

namespace accordion::bench {

// Throws an Error that names codec and tensor. Codecs have laws of their own,
void check_step(const CodecOptions& codec, const TensorInfo& info, const GroupStep& group);

// and one that has none here is held to what holds for any: ranks agree, and with a residual nothing is lost.
void check_any_step(const CodecOptions& codec, const TensorInfo& info, const GroupStep& group);

}  // namespace accordion::bench
