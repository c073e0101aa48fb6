// Cells of a table in columns: the first flush left, the others flush right.
#pragma once

#include <string>
#include <vector>

namespace accordion {

using Cells = std::vector<std::string>;

// Pads every cell to the width of its column, which is at least `least`. All lines have as many cells.
void align(std::vector<Cells>& lines, int least = 0);

}  // namespace accordion
