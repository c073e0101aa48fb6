// bench/peers.py as a peer of the codecs.
#pragma once

#include <string>

#include "bench/codecs.h"

namespace accordion::bench {

// Starts `python peer` with the allocator settings of this process; it lives as long as what is returned.
CodecPeer start_codec_peer(const std::string& python, const std::string& peer, int threads);

}  // namespace accordion::bench
