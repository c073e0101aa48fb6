// Independent pieces of work on a few threads.
#pragma once

#include <cstddef>
#include <functional>

namespace accordion {

// Calls work(i) for every i below count, on up to `threads` threads, each taking the next i when it is free.
// Which thread takes which is left to chance, so a result must not depend on it. The first exception thrown
// comes out after all have ended.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace accordion
