// Stands in for the tests' own list.
#pragma once

#include "accordion/compress/codec_entry_testing.h"

namespace accordion::testing_codecs {

inline const std::vector<CodecEntry>& codec_entries() {
  static const std::vector<CodecEntry> entries = {
      {.name = "every-other",
       .cases = {{"every-other"}, {"every-other:stride=3"}, {"every-other:chunked=true"}}}};
  return entries;
}

}  // namespace accordion::testing_codecs
