#include "accordion/log/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "accordion/base/error.h"

namespace accordion {

UniqueFd lock_folder(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.is_open() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw UsageError(
        folder.string() +
        ": another process is writing there; wait for its end, or give another folder with --out");
  return fd;
}

}  // namespace accordion
