#include "accordion/base/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "accordion/base/error.h"

namespace accordion {

std::string read_file(const std::filesystem::path& path, std::uint64_t most) {
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(path, unknown);  // A pipe has none.
  if (!unknown && size > most)
    throw Error(path.string() + ": " + std::to_string(size) + " bytes, expected at most " +
                std::to_string(most));
  const auto fail = [&] {
    throw Error(path.string() + ": cannot read: " + std::generic_category().message(errno ? errno : EIO));
  };
  const std::unique_ptr<std::FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "rbe"),
                                                                &std::fclose);
  if (!file) fail();
  constexpr std::size_t kChunk = 1 << 16;  // For what a file has grown by, or where the system tells no size.
  std::string text;
  for (std::size_t want = unknown ? kChunk : std::max<std::size_t>(size, 1);; want = kChunk) {
    const std::size_t had = text.size();
    text.resize(had + want);
    text.resize(had + std::fread(text.data() + had, 1, want, file.get()));
    if (text.size() > most)
      throw Error(path.string() + ": more than " + std::to_string(most) + " bytes, which no such file has");
    if (text.size() < had + want) break;
  }
  if (std::ferror(file.get())) fail();
  return text;
}

}  // namespace accordion
