#include "accordion/data/dataset.h"

#include <algorithm>
#include <optional>

#include "accordion/base/error.h"
#include "accordion/base/hash.h"
#include "accordion/data/catalogue.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

// The file itself or its gzip; empty if there is neither.
fs::path existing(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored)) return file;
  const fs::path zipped = file.string() + ".gz";
  return fs::is_regular_file(zipped, ignored) ? zipped : fs::path();
}

// The data set's files in `folder`, under the first names by which all are there. If there are none,
// `lacking` becomes the name of a file that the folder lacks beside others that it has.
std::optional<std::vector<fs::path>> files_in(const fs::path& folder, const KnownDataset& known,
                                              std::string& lacking) {
  for (const auto& names : known.namings) {
    std::vector<fs::path> files;
    std::string missing;
    for (const std::string& name : names)
      if (const fs::path file = existing(folder / name); !file.empty())
        files.push_back(file);
      else if (missing.empty())
        missing = name;
    if (files.size() == names.size()) return files;
    if (!files.empty() && lacking.empty()) lacking = missing;
  }
  return std::nullopt;
}

std::vector<fs::path> places_to_look(const KnownDataset& known, const fs::path& data_dir,
                                     const fs::path& data_root) {
  std::vector<fs::path> places;
  const fs::path& parent = data_dir.empty() ? data_root : data_dir;
  if (!parent.empty())
    for (const std::string& folder : known.folders) places.push_back(parent / folder);
  if (!data_dir.empty())
    places.push_back(data_dir);
  else if (!known.system_folder.empty())
    places.emplace_back(known.system_folder);
  return places;
}

// The first place with all files. There is at least one file.
std::vector<fs::path> find_files(const KnownDataset& known, const fs::path& data_dir,
                                 const fs::path& data_root) {
  std::error_code ignored;
  if (!data_dir.empty() && !fs::is_directory(data_dir, ignored))
    throw UsageError("data-dir=" + data_dir.string() + ", expected a folder with the files of " + known.name);
  std::string looked;
  for (const fs::path& place : places_to_look(known, data_dir, data_root)) {
    std::string lacking;
    if (const auto files = files_in(place, known, lacking)) return *files;
    looked += (looked.empty() ? "" : ", ") + place.string();
    if (!lacking.empty()) looked += " (which lacks " + lacking + ")";
  }
  throw Error("data set " + known.name + " not found; looked for " + known.namings.front().front() +
              " and so on in " + (looked.empty() ? "no folder, as none was given" : looked) +
              ". To get it: " + known.how_to_get);
}

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const KnownDataset& known : known_datasets()) names.push_back(known.name);
  return names;
}

DatasetFacts dataset_facts(const std::string& name) {
  return known_dataset(name).facts;
}

fs::path default_data_root(const char* accordion_data, const char* home) {
  const auto is_set = [](const char* value) { return value != nullptr && *value != '\0'; };
  if (is_set(accordion_data)) return accordion_data;
  if (is_set(home)) return fs::path(home) / ".cache" / "accordion";
  return {};
}

fs::path find_dataset(const std::string& name, const fs::path& data_dir, const fs::path& data_root) {
  const KnownDataset& known = known_dataset(name);
  if (known.facts.synthetic) return {};
  return find_files(known, data_dir, data_root).front().parent_path();
}

Dataset load_dataset(const std::string& name, const fs::path& data_dir, const fs::path& data_root) {
  const KnownDataset& known = known_dataset(name);
  return {name, known.load(known.facts.synthetic ? std::vector<fs::path>()
                                                 : find_files(known, data_dir, data_root))};
}

InputShape input_shape(const Dataset& dataset) {
  return std::visit([](const auto& set) -> InputShape { return set.shape(); }, dataset.contents);
}

DatasetFacts facts_of(const Dataset& dataset) {
  return std::visit(
      [](const auto& set) {
        return DatasetFacts{set.shape(), set.train.size(), set.test.size()};
      },
      dataset.contents);
}

void limit_tests(Dataset& dataset, std::size_t samples) {
  std::visit([&](auto& set) { set.test.resize(std::min(samples, set.test.size())); }, dataset.contents);
}

std::uint64_t fingerprint(const Dataset& dataset) {
  Hash hash;
  hash.add(dataset.name);
  std::visit([&](const auto& set) { set.add_to(hash); }, dataset.contents);
  return hash.value();
}

}  // namespace accordion
