#include "accordion/log/read_file.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "accordion/base/error.h"

namespace accordion {

std::string read_file(const std::filesystem::path& path, std::uint64_t most) {
  std::error_code unknown;
  const std::uint64_t size = std::filesystem::file_size(path, unknown);  // A pipe has none.
  if (!unknown && size > most)
    throw Error(path.string() + ": " + std::to_string(size) + " bytes, expected at most " +
                std::to_string(most));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  try {
    std::string text;
    if (file && !unknown && size > 0) {
      text.resize(size);
      file.read(text.data(), static_cast<std::streamsize>(size));
      text.resize(static_cast<std::size_t>(file.gcount()));
      file.clear(file.rdstate() & ~std::ios::failbit & ~std::ios::eofbit);
    }
    // What has come since, or a file whose size the system does not tell.
    if (file && !file.bad()) return text.append(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios_base::failure&) {  // Opens but does not read: a folder, say.
  }
  throw Error(path.string() + ": cannot read: " + std::generic_category().message(errno ? errno : EIO));
}

}  // namespace accordion
