#include "accordion/log/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/read_file.h"
#include "accordion/log/checksum.h"
#include "accordion/log/write_file.h"

namespace accordion {
namespace {

constexpr std::size_t kLongestHeader = 100 << 20;  // As the format's own library has it.

constexpr std::pair<std::string_view, std::size_t> kWidths[] = {
    {"F64", 8},  {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4}, {"U32", 4}, {"F16", 2},
    {"BF16", 2}, {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};

// Bytes of an element; 0 for a type that is not known.
std::size_t width_of(std::string_view dtype) {
  for (const auto& [name, width] : kWidths)
    if (name == dtype) return width;
  return 0;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The bytes that an array of this shape has, or nothing where that is more than any file.
bool bytes_of(const std::vector<std::int64_t>& shape, std::size_t width, std::uint64_t& bytes) {
  bytes = width;
  for (const std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) return false;
  return true;
}

struct Entry {
  std::uint64_t begin, end;
};

Entry read_entry(const Json& entry, const std::string& where, Array& array) {
  try {
    entry.at("dtype").get_to(array.dtype);
    // Numbers that are negative, fractions or too large become others silently; so their types are looked at.
    for (const char* key : {"shape", "data_offsets"}) {
      if (!entry.at(key).is_array()) throw Error(where + ": " + key + " is no list");
      for (const Json& number : entry.at(key))
        if (!number.is_number_unsigned())
          throw Error(where + ": " + key + " has " + number.dump() + ", expected whole numbers");
    }
    for (const Json& size : entry.at("shape")) {
      const auto value = size.get<std::uint64_t>();
      if (value > std::uint64_t{1} << 62) throw Error(where + ": a size of " + size.dump());
      array.shape.push_back(static_cast<std::int64_t>(value));
    }
    const Json& offsets = entry.at("data_offsets");
    if (offsets.size() != 2) throw Error(where + ": data_offsets are not two");
    return {offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
  } catch (const Json::exception& error) {
    throw Error(where + ": " + error.what());
  }
}

template <class Number>
std::vector<Number> numbers_of(const Array& array) {
  std::vector<Number> numbers(array.bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), array.bytes.data(), array.bytes.size());
  return numbers;
}

}  // namespace

WrittenFile write_safetensors(const std::filesystem::path& path, const Arrays& arrays) {
  // Wide elements first, so that all of them are aligned without gaps.
  std::vector<const Arrays::value_type*> order;
  for (const auto& entry : arrays) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return width_of(a->second.dtype) > width_of(b->second.dtype);
  });
  Json header = Json::object();
  std::uint64_t at = 0;
  for (const auto* entry : order) {
    const auto& [name, array] = *entry;
    std::uint64_t bytes = 0;
    if (!bytes_of(array.shape, width_of(array.dtype), bytes) || bytes != array.bytes.size())
      throw Error(path.string() + ": " + name + " has " + std::to_string(array.bytes.size()) +
                  " bytes, expected as many as its shape of " + array.dtype + " says");
    header[name] = {{"dtype", array.dtype}, {"shape", array.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::vector<std::string_view> pieces = {{reinterpret_cast<const char*>(&length), sizeof length}, text};
  for (const auto* entry : order) pieces.push_back(text_of(entry->second.bytes));
  write_whole(path, pieces);
  return {.bytes = sizeof length + length + at, .sha256 = sha256(pieces)};
}

Arrays parse_safetensors(std::string_view file, const std::string& name) {
  std::uint64_t length = 0;
  if (file.size() < sizeof length)
    throw Error(name + ": " + std::to_string(file.size()) + " bytes, expected a safetensors file");
  std::memcpy(&length, file.data(), sizeof length);
  file.remove_prefix(sizeof length);
  if (length > file.size() || length > kLongestHeader)
    throw Error(name + ": a header of " + std::to_string(length) + " bytes in a file that has " +
                std::to_string(file.size()) + " after its length");
  Json header;
  try {
    header = Json::parse(file.substr(0, length));
  } catch (const Json::parse_error& error) {
    throw Error(name + ": its header is not JSON: " + error.what());
  }
  if (!header.is_object()) throw Error(name + ": its header is no JSON object");
  const std::string_view data = file.substr(length);

  Arrays arrays;
  std::vector<Entry> entries;
  for (const auto& [key, value] : header.items()) {
    if (key == "__metadata__") continue;
    const std::string where = name + ": " + key;
    Array array;
    const Entry entry = read_entry(value, where, array);
    std::uint64_t bytes = 0;
    const std::size_t width = width_of(array.dtype);
    if (width == 0) throw Error(where + ": of type " + array.dtype + ", which is not known");
    if (entry.begin > entry.end || entry.end > data.size() || !bytes_of(array.shape, width, bytes) ||
        bytes != entry.end - entry.begin)
      throw Error(where + ": bytes " + std::to_string(entry.begin) + " to " + std::to_string(entry.end) +
                  " of " + std::to_string(data.size()) + ", which do not fit its shape");
    array.bytes = std::as_bytes(std::span(data.substr(entry.begin, bytes)));
    arrays.emplace(key, std::move(array));
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at) throw Error(name + ": its arrays overlap or leave gaps");
    at = entry.end;
  }
  if (at != data.size())
    throw Error(name + ": " + std::to_string(data.size()) + " bytes of data, of which its arrays have " +
                std::to_string(at));
  return arrays;
}

ArrayFile::ArrayFile(const std::filesystem::path& path)
    : path_(path), contents_(read_file(path)), arrays_(parse_safetensors(contents_, path.string())) {}

ArrayFile::ArrayFile(const std::filesystem::path& path, const WrittenFile& expected)
    : path_(path), contents_(read_file(path, expected.bytes)) {
  const std::string_view whole = contents_;
  if (whole.size() != expected.bytes || sha256({&whole, 1}) != expected.sha256)
    throw Error(path.string() + ": not the file that was written: its size or its checksum is another");
  arrays_ = parse_safetensors(contents_, path.string());
}

const Array& ArrayFile::at(std::string_view name) const {
  if (const auto found = arrays_.find(name); found != arrays_.end()) return found->second;
  throw Error(path_.string() + ": has no " + std::string(name));
}

void add_state(const State& state, std::string_view prefix, Arrays& arrays) {
  for (const auto& [name, value] : state) {
    const auto add = [&, &key = name](const char* dtype, const auto& values) {
      arrays[std::string(prefix) + "/" + key] = {
          dtype, {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))};
    };
    if (const auto* floats = std::get_if<std::vector<float>>(&value)) add("F32", *floats);
    if (const auto* doubles = std::get_if<std::vector<double>>(&value)) add("F64", *doubles);
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) add("I64", *integers);
    if (const auto* text = std::get_if<std::string>(&value)) add("U8", *text);
  }
}

State state_of(const Arrays& arrays, std::string_view prefix) {
  const std::string start = std::string(prefix) + "/";
  State state;
  for (auto at = arrays.lower_bound(start); at != arrays.end() && at->first.starts_with(start); ++at) {
    const Array& array = at->second;
    StateValue& value = state[at->first.substr(start.size())];
    if (array.dtype == "F32")
      value = numbers_of<float>(array);
    else if (array.dtype == "F64")
      value = numbers_of<double>(array);
    else if (array.dtype == "I64")
      value = numbers_of<std::int64_t>(array);
    else if (array.dtype == "U8")
      value = std::string(text_of(array.bytes));
    else
      throw Error(at->first + ": of type " + array.dtype + ", expected F32, F64, I64 or U8");
  }
  return state;
}

}  // namespace accordion
