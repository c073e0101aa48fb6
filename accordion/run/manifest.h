// What a checkpoint's manifest.json says: where in the run it was taken, and which files it has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accordion/base/json_fwd.h"
#include "accordion/log/safetensors.h"

namespace accordion {

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kCommonFile = "common.safetensors";
std::string rank_file(int rank);  // "rank-3.safetensors"

// What comes next in a run.
struct Position {
  int epoch = 0;
  std::int64_t epoch_step = 0;  // As many steps of the epoch lie behind.
  std::int64_t step = 0;        // The same, since the run began.
};

struct Manifest {
  struct File : WrittenFile {
    std::string name;
  };

  Position position;
  int workers = 1;
  std::vector<File> files;  // The common one, then each rank's.

  const File& file(const std::string& name) const;  // Throws Error.
};

// With a checksum of its own, so that no byte of a checkpoint can change unnoticed.
std::string manifest_text(const Manifest& manifest);

// Throws Error, led by `where`, for what is not a manifest of this version.
Manifest parse_manifest(const std::string& text, const std::string& where);
Manifest read_manifest(const std::filesystem::path& checkpoint);

}  // namespace accordion
