// Levels written down beforehand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace accordion {

struct Interval {
  int begin, end;  // Windows, the last one not included.
  int level;
};
struct Schedule {
  std::vector<Interval> intervals;  // The first that holds a window counts,
  int otherwise;                    // and where none does, this.
  std::string name = "written schedule";
};

// "mild@0-20,strong", "critical", "inverse".
Schedule parse_plan(std::string_view text, int levels);

}  // namespace accordion
