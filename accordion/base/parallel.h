// Independent pieces of work on a few threads.
#pragma once

#include <cstddef>

namespace accordion {

namespace detail {
using Piece = void (*)(void* work, std::size_t i);
void parallel_for(std::size_t count, int threads, Piece piece, void* work);
}  // namespace detail

// Calls work(i) for every i below count, on up to `threads` threads, each taking the next i when it is free.
// Which thread takes which is left to chance, so a result must not depend on it. The first exception thrown
// comes out after all have ended.
template <class Work>
void parallel_for(std::size_t count, int threads, Work work) {
  // By pointer: a std::function would allocate in every step.
  detail::parallel_for(
      count, threads, [](void* work, std::size_t i) { (*static_cast<Work*>(work))(i); }, &work);
}

}  // namespace accordion
