#include "accordion/base/names.h"

#include <algorithm>
#include <numeric>

namespace accordion {
namespace {

constexpr std::size_t kLongestName =
    60;  // That somebody may have typed; it takes the product of two lengths to compare.

std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  if (name.size() > kLongestName) return best;
  std::size_t fewest = std::max<std::size_t>(2, name.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edits(name, candidate);
    if (distance < fewest) {
      fewest = distance;
      best = candidate;
    }
  }
  return best;
}

std::string join(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (&name == &names.front() ? "" : ", ") + name;
  return list;
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& candidates) {
  std::string message = "unknown " + std::string(kind) + " \"" + std::string(name.substr(0, kLongestName)) +
                        (name.size() > kLongestName ? "...\"" : "\"");
  if (const std::string nearest = nearest_name(name, candidates); !nearest.empty())
    message += "; did you mean \"" + nearest + "\"?";
  return message + (message.back() == '?' ? "" : ".") + " There are: " + join(candidates);
}

}  // namespace accordion
