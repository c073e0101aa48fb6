// How ranks come to have a connection each to every other rank: each listens on one address for as long as that takes, and
// tells the others where.
//
// What it tells is "ADDRESS PORT SECRET"; whoever connects says
//
// hello := "accordion-rank-1"; secret: 16 bytes; rank: u64
//
// and is hung up on unless the secret is right: it is read in the ranks' store alone. A rank may take its time to say it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "accordion/base/unique_fd.h"
#include "accordion/comm/sockets.h"

namespace accordion {

// A place that all ranks read and write. `find` waits until the key is there, and throws Error at the deadline.
struct Noticeboard {
  std::function<void(const std::string& key, const std::string& text)> write;
  std::function<std::string(const std::string& key, Deadline deadline)> find;
};

// Sockets by rank, which do not block; the own one is not open. Throws Error. Collective.
std::vector<UniqueFd> connect_ranks(int rank, int size, const std::string& address, const Noticeboard& board,
                                    Deadline deadline);

}  // namespace accordion
