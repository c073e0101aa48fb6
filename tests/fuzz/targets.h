// Every parser that has a fuzzer, beside the codecs' decoders (decode.h).
#pragma once

#include <vector>

#include "fuzz/target.h"

namespace accordion::fuzz {

const std::vector<Target>& targets();

// By what they read.
std::vector<Target> data_targets();
std::vector<Target> record_targets();
std::vector<Target> setting_targets();
std::vector<Target> wire_targets();

}  // namespace accordion::fuzz
