// Codec settings from mild to strong, each sending about half of what the one before it does.
#pragma once

#include <vector>

#include "accordion/compress/codecs.h"

namespace accordion {

// From `mild` to `strong`, both included: two settings of one codec that differ in how much they send. Throws
// UsageError, led by `owner`, where there is nothing in between to write down.
std::vector<CodecOptions> make_ladder(std::string_view owner, const CodecOptions& mild,
                                      const CodecOptions& strong);

// The whole range that is in use of a codec: what a run chooses from when its user names the codec alone.
std::vector<CodecOptions> make_ladder(std::string_view owner, const CodecOptions& codec);

}  // namespace accordion
