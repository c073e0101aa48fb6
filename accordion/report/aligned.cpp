#include "accordion/report/aligned.h"

#include <algorithm>

#include "accordion/log/progress_text.h"

namespace accordion {

void align(std::vector<Cells>& lines, int least) {
  for (std::size_t i = 0; i < lines[0].size(); ++i) {
    int width = least;
    for (const Cells& line : lines) width = std::max(width, columns_of(line[i]));
    for (Cells& line : lines) {
      const std::string space(static_cast<std::size_t>(width - columns_of(line[i])), ' ');
      line[i] = i == 0 ? line[i] + space : space + line[i];
    }
  }
}

}  // namespace accordion
