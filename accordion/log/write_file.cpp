#include "accordion/log/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "accordion/base/json.h"
#include "accordion/base/options.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* operation, int error) {
  throw Error(path.string() + ": cannot " + operation + ": " + std::generic_category().message(error));
}

class File {
 public:
  File(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail(path, "open", errno);
  }
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  int close() { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// Zero or the error.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// Some file systems have nothing to synchronise and say so.
int sync(int fd) {
  return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
}

// The bytes after the last newline, and where they begin.
std::string unfinished_line(const fs::path& path, int fd, off_t size, off_t& begin) {
  std::string tail;
  char block[4096];
  for (begin = size; begin > 0;) {
    const off_t from =
        begin > static_cast<off_t>(sizeof block) ? begin - static_cast<off_t>(sizeof block) : 0;
    const ssize_t got = ::pread(fd, block, static_cast<std::size_t>(begin - from), from);
    if (got != begin - from) fail(path, "read", got < 0 ? errno : EIO);
    const std::string_view read(block, static_cast<std::size_t>(got));
    const std::size_t newline = read.rfind('\n');
    const std::size_t kept = newline == std::string_view::npos ? 0 : newline + 1;
    tail.insert(0, read.substr(kept));
    begin = from + static_cast<off_t>(kept);
    if (newline != std::string_view::npos) break;
  }
  return tail;
}

}  // namespace

void write_whole(const fs::path& path, std::string_view text) {
  write_whole(path, std::span(&text, 1));
}

void write_whole(const fs::path& path, std::span<const std::string_view> pieces) {
  fs::path temporary = path;
  temporary.replace_filename("." + path.filename().string() + "." + std::to_string(::getpid()) + ".tmp");
  int error = 0;
  {
    File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    for (const std::string_view piece : pieces)
      if (error == 0) error = write_all(file.fd(), piece);
    if (error == 0) error = sync(file.fd());
    if (file.close() != 0 && error == 0) error = errno;
  }
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    fail(path, "write", error);
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

// A name is safe once its folder is; one that cannot be opened costs only this.
void sync_folder(const fs::path& folder) {
  if (const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
    ::fsync(fd);
    ::close(fd);
  }
}

void append_line(const fs::path& path, std::string_view line) {
  File file(path, O_RDWR | O_CREAT | O_APPEND);
  struct stat state {};
  if (::fstat(file.fd(), &state) != 0) fail(path, "examine", errno);
  off_t size = state.st_size;
  std::string text;
  off_t begin = size;
  if (const std::string tail = unfinished_line(path, file.fd(), size, begin); Json::accept(tail)) {
    text = "\n";  // Whole after all, as an editor may leave it.
  } else if (!tail.empty()) {
    if (::ftruncate(file.fd(), begin) != 0) fail(path, "truncate", errno);
    size = begin;
  }
  text.append(line).append("\n");
  int error = write_all(file.fd(), text);
  if (error == 0) error = sync(file.fd());
  if (error != 0) {
    if (::ftruncate(file.fd(), size) != 0)
      throw Error(
          path.string() + ": cannot append: " + std::generic_category().message(error) +
          "; and cannot truncate what was written of the line: " + std::generic_category().message(errno));
    fail(path, "append", error);
  }
}

}  // namespace accordion
