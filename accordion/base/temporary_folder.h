// A folder of its own, gone with its contents at the end of the scope.
#pragma once

#include <stdlib.h>  // mkdtemp is POSIX

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "accordion/base/error.h"

namespace accordion {

class TemporaryFolder {
 public:
  // `prefix` ends in a name: "/tmp/fetch-" gives /tmp/fetch-aB3xY9.
  explicit TemporaryFolder(const std::filesystem::path& prefix) {
    std::string name = prefix.string() + "XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
      throw Error("cannot make a folder " + prefix.string() + "*: " + std::strerror(errno));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace accordion
