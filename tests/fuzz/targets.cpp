// A parser becomes a target by an entry in one of these lists: a name, some valid inputs, and a call that throws Error for
// what it refuses. That makes it part of `make fuzz` and of parse_test.
#include "fuzz/targets.h"

namespace accordion::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> result;
    for (const auto& list : {data_targets(), record_targets(), setting_targets(), wire_targets()})
      result.insert(result.end(), list.begin(), list.end());
    return result;
  }();
  return all;
}

}  // namespace accordion::fuzz
