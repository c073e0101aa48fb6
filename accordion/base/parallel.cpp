#include "accordion/base/parallel.h"

#include <algorithm>
#include <exception>

namespace accordion::detail {

void parallel_for(std::size_t count, int threads, Piece piece, void* work) {
  const int team =
      static_cast<int>(std::min<std::size_t>(count, static_cast<std::size_t>(std::max(threads, 1))));
  if (team <= 1) {
    for (std::size_t i = 0; i < count; ++i) piece(work, i);
    return;
  }
  std::exception_ptr first;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team)
  for (std::size_t i = 0; i < count; ++i) {
    try {
      piece(work, i);
    } catch (...) {  // OpenMP lets no exception out of its region.
#pragma omp critical(accordion_parallel_for)
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace accordion::detail
