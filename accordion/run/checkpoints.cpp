#include "accordion/run/checkpoints.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <random>
#include <system_error>

#include "accordion/base/error.h"
#include "accordion/base/read_file.h"
#include "accordion/log/write_file.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStep = "step-";
constexpr std::string_view kPartial = ".partial";

// The number in "step-N"; nothing for another name.
std::optional<std::int64_t> step_of(const std::string& name) {
  std::int64_t step = 0;
  if (!name.starts_with(kStep)) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + kStep.size(), name.data() + name.size(), step);
  return error == std::errc() && end == name.data() + name.size() && step >= 0 ? std::optional(step)
                                                                               : std::nullopt;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// The ranks among which a flag is set: "2, 5".
std::string ranks_with(Communicator& control, bool flag) {
  std::vector<std::byte> flags(static_cast<std::size_t>(control.size()));
  const std::byte mine{flag};
  control.gather(std::span(&mine, 1), flags);
  std::string ranks;
  for (std::size_t r = 0; r < flags.size(); ++r)
    if (flags[r] != std::byte{0}) ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
  return ranks;
}

// Of a fixed length, so that what a run sends does not depend on where its folder is.
struct Meeting {
  std::array<char, 4096> folder{};
  std::array<char, 32> token{};
  std::array<char, 512> trouble{};  // Why rank 0 cannot write there.
};

fs::path meeting_file(const fs::path& folder) {
  return folder / ".meeting";
}

// What a rank has written of its part.
struct Report {
  std::uint64_t bytes[2] = {};  // Its own file's, and, of rank 0, the common one's.
  char sha256[2][64] = {};
  std::uint8_t failed = 0;
};

void enter(Report& report, int which, const WrittenFile& file) {
  report.bytes[which] = file.bytes;
  file.sha256.copy(report.sha256[which], sizeof report.sha256[which]);
}

Manifest::File entry(const Report& report, int which, std::string name) {
  Manifest::File file;
  file.bytes = report.bytes[which];
  file.sha256.assign(report.sha256[which], sizeof report.sha256[which]);
  file.name = std::move(name);
  return file;
}

}  // namespace

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (const auto step = step_of(at->path().filename().string())) found.emplace_back(*step, at->path());
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::vector<int> predecessors(int rank, int now, int before) {
  std::vector<int> ranks;
  for (int r = rank; r < before; r += now) ranks.push_back(r);
  return ranks;
}

LoadedCheckpoint load_checkpoint(const fs::path& checkpoint, int rank, int ranks) {
  Manifest manifest = read_manifest(checkpoint);
  const auto open = [&](const std::string& name) {
    return ArrayFile(checkpoint / name, manifest.file(name));
  };
  LoadedCheckpoint loaded{
      .path = checkpoint, .manifest = manifest, .common = open(kCommonFile), .parts = {}, .first = {}};
  for (const int before : predecessors(rank, ranks, manifest.workers))
    loaded.parts.push_back(open(rank_file(before)));
  if (manifest.workers != ranks) loaded.first = open(rank_file(0));
  return loaded;
}

std::optional<LoadedCheckpoint> newest_checkpoint(const fs::path& folder, const Note& note) {
  for (const fs::path& path : checkpoints_in(folder)) try {
      return load_checkpoint(path, 0, 1);
    } catch (const Error& error) {
      note(std::string(error.what()) + "; the checkpoint before it is used");
    }
  return std::nullopt;
}

Checkpoints::Checkpoints(fs::path folder, int keep, Communicator& control) : keep_(keep), control_(control) {
  Meeting meeting;
  if (control_.rank() == 0) {
    std::error_code ignored;
    folder_ = fs::absolute(folder);
    // What a run that died left half done.
    for (fs::directory_iterator at(folder_, ignored), end; !ignored && at != end; at.increment(ignored))
      if (at->path().extension() == kPartial) fs::remove_all(at->path(), ignored);
    std::random_device draw;
    for (char& c : meeting.token) c = static_cast<char>('a' + draw() % 26);
    try {
      if (folder_.string().copy(meeting.folder.data(), meeting.folder.size() - 1) < folder_.string().size())
        throw Error(folder_.string() + ": the name of the folder is too long");
      write_whole(meeting_file(folder_), {meeting.token.data(), meeting.token.size()});
    } catch (const Error& error) {
      std::string(error.what()).copy(meeting.trouble.data(), meeting.trouble.size() - 1);
    }
  }
  control_.broadcast(std::as_writable_bytes(std::span(&meeting, 1)), 0);
  if (meeting.trouble[0]) throw Error(std::string("checkpoints: rank 0: ") + meeting.trouble.data());
  folder_ = meeting.folder.data();
  bool failed = false;
  try {
    failed = read_file(meeting_file(folder_), meeting.token.size()) !=
             std::string(meeting.token.data(), meeting.token.size());
  } catch (const Error&) {
    failed = true;
  }
  const std::string blind = ranks_with(control_, failed);
  std::error_code ignored;
  if (control_.rank() == 0) fs::remove(meeting_file(folder_), ignored);
  if (!blind.empty())
    throw Error("checkpoints: " + folder_.string() + " of rank 0 is not seen by rank " + blind +
                " (this is rank " + std::to_string(control_.rank()) + " on " + host_name() +
                "); give --out a folder that all machines share, or --checkpoint-every never");
}

std::string Checkpoints::write(const Position& position, const Arrays& common, const Arrays& part) {
  const fs::path partial =
      folder_ / (std::string(kStep) + std::to_string(position.step) + std::string(kPartial));
  Report mine;
  std::string reason;
  try {
    std::error_code error;
    fs::create_directories(partial, error);
    if (error) throw Error(partial.string() + ": cannot create the folder: " + error.message());
    enter(mine, 0, write_safetensors(partial / rank_file(control_.rank()), part));
    if (control_.rank() == 0) enter(mine, 1, write_safetensors(partial / kCommonFile, common));
  } catch (const Error& error) {
    mine.failed = 1;
    reason = error.what();
  }
  std::vector<Report> all(static_cast<std::size_t>(control_.size()));
  control_.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  const auto failed =
      std::find_if(all.begin(), all.end(), [](const Report& report) { return report.failed; });
  if (failed != all.end()) {
    std::error_code ignored;
    if (control_.rank() == 0) fs::remove_all(partial, ignored);
    return !reason.empty() ? reason
                           : "rank " + std::to_string(failed - all.begin()) + " could not write its part";
  }
  if (control_.rank() != 0) return "";
  Manifest manifest{
      .position = position, .workers = control_.size(), .files = {entry(all[0], 1, kCommonFile)}};
  for (int r = 0; r < control_.size(); ++r)
    manifest.files.push_back(entry(all[static_cast<std::size_t>(r)], 0, rank_file(r)));
  return complete(std::move(manifest), partial);
}

// Rank 0's: the others go on.
std::string Checkpoints::complete(Manifest manifest, const fs::path& partial) {
  const fs::path whole = fs::path(partial).replace_extension();
  try {
    write_whole(partial / kManifestFile, manifest_text(manifest));
    std::error_code error;
    fs::remove_all(whole, error);  // Of a run that came this far before, and was resumed from an earlier one.
    fs::rename(partial, whole, error);
    if (error) throw Error(whole.string() + ": cannot rename: " + error.message());
    sync_folder(folder_);
    prune();
    return "";
  } catch (const Error& error) {
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    return error.what();
  }
}

void Checkpoints::prune() const {
  const std::vector<fs::path> all = checkpoints_in(folder_);
  std::error_code ignored;
  for (std::size_t i = static_cast<std::size_t>(keep_); i < all.size(); ++i) fs::remove_all(all[i], ignored);
}

std::optional<LoadedCheckpoint> Checkpoints::newest(const Note& note) {
  // Rank 0's list, as the others may see an older state of the folder.
  std::vector<std::int64_t> steps;
  if (control_.rank() == 0)
    for (const fs::path& path : checkpoints_in(folder_)) steps.push_back(*step_of(path.filename().string()));
  std::uint64_t count = steps.size();
  control_.broadcast(std::as_writable_bytes(std::span(&count, 1)), 0);
  steps.resize(count);
  if (count > 0) control_.broadcast(std::as_writable_bytes(std::span(steps)), 0);
  for (const std::int64_t step : steps) {
    const fs::path path = folder_ / (std::string(kStep) + std::to_string(step));
    std::optional<LoadedCheckpoint> loaded;
    std::string reason;
    try {
      loaded = load_checkpoint(path, control_.rank(), control_.size());
    } catch (const Error& error) {
      reason = error.what();
    }
    const std::string failed = ranks_with(control_, !loaded);
    if (failed.empty()) return loaded;
    if (reason.empty()) reason = path.string() + ": cannot be read by rank " + failed;
    note(reason + "; the checkpoint before it is used");
  }
  return std::nullopt;
}

}  // namespace accordion
