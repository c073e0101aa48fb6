// The timings of codecs as text and as JSON.
#pragma once

#include <string>

#include "accordion/base/json_fwd.h"
#include "bench/codecs.h"

namespace accordion::bench {

std::string table_head(const CodecBench& bench, int threads);
std::string table_row(const CodecTiming& timing);
std::string table_foot();

Json to_json(const CodecBench& bench, int threads, const CodecTiming& timing);

}  // namespace accordion::bench
