#include "accordion/run/manifest.h"

#include <algorithm>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/read_file.h"
#include "accordion/base/version.h"
#include "accordion/log/checksum.h"

namespace accordion {
namespace {

constexpr int kFormat = 1;
constexpr int kMostWorkers = 1 << 20;
constexpr const char* kChecksum = "sha256";

// Of everything else in it, however it is laid out.
std::string checksum_of(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string_view whole = text;
  return sha256({&whole, 1});
}

// A whole number from 0 to `most`.
std::int64_t number_at(const Json& json, const char* key, std::int64_t most, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned() ||
      found->get<std::uint64_t>() > static_cast<std::uint64_t>(most))
    throw Error(where + ": " + key + " is " + (found == json.end() ? "missing" : shown(*found)) +
                ", expected a whole number up to " + std::to_string(most));
  return found->get<std::int64_t>();
}

std::string text_at(const Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) throw Error(where + ": " + key + " is missing or no text");
  return found->get<std::string>();
}

Manifest::File read_entry(const Json& json, const std::string& where) {
  if (!json.is_object()) throw Error(where + ": an entry of files is no object");
  Manifest::File file;
  file.name = text_at(json, "name", where);
  file.sha256 = text_at(json, "sha256", where);
  file.bytes = static_cast<std::uint64_t>(number_at(json, "bytes", std::int64_t{1} << 62, where));
  return file;
}

}  // namespace

std::string rank_file(int rank) {
  return "rank-" + std::to_string(rank) + ".safetensors";
}

const Manifest::File& Manifest::file(const std::string& name) const {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const File& file) { return file.name == name; });
  if (found == files.end()) throw Error(std::string(kManifestFile) + ": has no " + name);
  return *found;
}

std::string manifest_text(const Manifest& manifest) {
  Json files = Json::array();
  for (const Manifest::File& file : manifest.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"step", manifest.position.step},
               {"epoch", manifest.position.epoch},
               {"epoch_step", manifest.position.epoch_step},
               {"workers", manifest.workers},
               {"files", std::move(files)}};
  json[kChecksum] = checksum_of(json);
  return json.dump(2);
}

Manifest parse_manifest(const std::string& text, const std::string& where) {
  Json json = parse_json_object(text, where);
  if (const std::int64_t format = number_at(json, "format", 1 << 30, where); format != kFormat)
    throw Error(where + ": format " + std::to_string(format) + ", expected " + std::to_string(kFormat) +
                "; another version of accordion wrote it");
  const std::string checksum = text_at(json, kChecksum, where);
  json.erase(kChecksum);
  if (checksum != checksum_of(json)) throw Error(where + ": not as it was written: its checksum is another");
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  Manifest manifest;
  manifest.position = {.epoch = static_cast<int>(number_at(json, "epoch", 1 << 30, where)),
                       .epoch_step = number_at(json, "epoch_step", kMost, where),
                       .step = number_at(json, "step", kMost, where)};
  manifest.workers = static_cast<int>(number_at(json, "workers", kMostWorkers, where));
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array()) throw Error(where + ": files is missing or no list");
  for (const Json& file : *files) manifest.files.push_back(read_entry(file, where));
  if (manifest.workers < 1 || manifest.files.size() != static_cast<std::size_t>(manifest.workers) + 1)
    throw Error(where + ": " + std::to_string(manifest.files.size()) + " files of " +
                std::to_string(manifest.workers) + " workers, expected one of each and a common one");
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = checkpoint / kManifestFile;
  return parse_manifest(read_file(path, kMostJsonBytes), path.string());
}

}  // namespace accordion
