#include "accordion/log/norms.h"

#include <algorithm>
#include <charconv>
#include <fstream>

#include "accordion/base/error.h"
#include "accordion/log/epoch_record.h"
#include "accordion/log/read_run.h"

namespace accordion {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, std::size_t line, const std::string& what) {
  throw UsageError(file.string() + ", line " + std::to_string(line) + ": " + what);
}

// Epochs must be whole and in order: a controller compares one with those before it.
void check_whole(const RecordedNorms& recorded, const std::filesystem::path& file) {
  if (recorded.epochs.empty()) throw UsageError(file.string() + " holds no epoch");
  for (std::size_t e = 0; e < recorded.epochs.size(); ++e) {
    if (recorded.epochs[e].epoch != static_cast<int>(e))
      throw UsageError(file.string() + ": epoch " + std::to_string(recorded.epochs[e].epoch) +
                       " where epoch " + std::to_string(e) + " was expected");
    if (recorded.epochs[e].norms.size() != recorded.layers.size())
      throw UsageError(file.string() + ": epoch " + std::to_string(e) + " has " +
                       std::to_string(recorded.epochs[e].norms.size()) + " layers, expected " +
                       std::to_string(recorded.layers.size()));
  }
}

template <class Number>
Number parse(std::string_view text, const std::filesystem::path& file, std::size_t line) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    refuse(file, line, "\"" + std::string(text) + "\", expected a number");
  return value;
}

}  // namespace

RecordedNorms read_run_norms(const std::filesystem::path& folder) {
  RecordedNorms recorded;
  for (const Json& json : read_run(folder).epochs) {
    EpochRecord record;
    from_json(json, record);
    RecordedNorms::Epoch epoch{record.epoch, record.lr, {}};
    for (const LayerRecord& layer : record.layers) {
      epoch.norms.push_back(layer.norm);
      if (recorded.epochs.empty()) recorded.layers.push_back(layer.name);
    }
    recorded.epochs.push_back(std::move(epoch));
  }
  check_whole(recorded, folder);
  return recorded;
}

RecordedNorms read_csv_norms(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw UsageError(file.string() + ": cannot be read");
  constexpr std::string_view kHeader = "epoch,layer,norm,lr";
  RecordedNorms recorded;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (number == 1) {
      if (line != kHeader) refuse(file, 1, "\"" + line + "\", expected the header " + std::string(kHeader));
      continue;
    }
    if (line.empty()) continue;
    // A layer's name may hold commas; the other three columns do not.
    const std::size_t first = line.find(','), last = line.rfind(','),
                      third = last == 0 ? last : line.rfind(',', last - 1);
    if (first == std::string::npos || third <= first || third == std::string::npos)
      refuse(file, number, "\"" + line + "\", expected four columns: " + std::string(kHeader));
    const std::string_view row = line;
    const int epoch = parse<int>(row.substr(0, first), file, number);
    const std::string layer(row.substr(first + 1, third - first - 1));
    const double norm = parse<double>(row.substr(third + 1, last - third - 1), file, number);
    const double lr = parse<double>(row.substr(last + 1), file, number);
    if (recorded.epochs.empty() || recorded.epochs.back().epoch != epoch)
      recorded.epochs.push_back({epoch, lr, {}});
    RecordedNorms::Epoch& current = recorded.epochs.back();
    if (current.lr != lr) refuse(file, number, "another learning rate than the epoch's rows above");
    if (recorded.epochs.size() == 1) {
      if (std::find(recorded.layers.begin(), recorded.layers.end(), layer) != recorded.layers.end())
        refuse(file, number, "layer " + layer + " twice");
      recorded.layers.push_back(layer);
    } else if (current.norms.size() >= recorded.layers.size() ||
               recorded.layers[current.norms.size()] != layer) {
      refuse(file, number, "layer " + layer + ", expected the layers of the first epoch in their order");
    }
    current.norms.push_back(norm);
  }
  check_whole(recorded, file);
  return recorded;
}

}  // namespace accordion
