// A run's checkpoints: checkpoints/step-N/{manifest.json, common.safetensors, rank-R.safetensors}. Each rank writes its own
// part, rank 0 what all have in common. One is written under another name and renamed when it is complete and on disk, so
// that whatever is named step-N is whole, and the last good one stays until the next is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "accordion/comm/communicator.h"
#include "accordion/log/safetensors.h"
#include "accordion/run/manifest.h"

namespace accordion {

// A checkpoint as one rank reads it.
struct LoadedCheckpoint {
  std::filesystem::path path;
  Manifest manifest;
  ArrayFile common;
  // Of those ranks whose part this one takes over: its own, where there are as many ranks as there were. Where there are not,
  // rank 0's, for what all have in common.
  std::vector<ArrayFile> parts;
  std::optional<ArrayFile> first = {};
};

// The checkpoints of a folder, the newest first.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

// Which ranks of a group of `before` hand what they keep to rank `rank` of `now`.
std::vector<int> predecessors(int rank, int now, int before);

// Throws Error for one that is not whole.
LoadedCheckpoint load_checkpoint(const std::filesystem::path& checkpoint, int rank, int ranks);

// The newest one that is whole, for who reads alone; `note` is told of those that are not.
using Note = std::function<void(const std::string&)>;
std::optional<LoadedCheckpoint> newest_checkpoint(const std::filesystem::path& folder, const Note& note);

// As a group of ranks writes and reads them; all of it is collective.
class Checkpoints {
 public:
  // `folder` is rank 0's. Throws Error on every rank, naming those that do not see it. `keep`: so many stay.
  Checkpoints(std::filesystem::path folder, int keep, Communicator& control);

  // Empty, or why nothing was written: a full disk is no reason to stop training. `common` is rank 0's.
  std::string write(const Position& position, const Arrays& common, const Arrays& part);

  // The newest one of which every rank can read its part.
  std::optional<LoadedCheckpoint> newest(const Note& note);

 private:
  std::string complete(Manifest manifest, const std::filesystem::path& partial);
  void prune() const;

  std::filesystem::path folder_;
  int keep_;
  Communicator& control_;
};

}  // namespace accordion
