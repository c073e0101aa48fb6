#include "accordion/log/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <fstream>

#include "accordion/base/error.h"
#include "accordion/base/temporary_folder.h"
#include "accordion/base/read_file.h"

namespace accordion {
namespace {

const std::string kPrefix = (std::filesystem::temp_directory_path() / "safetensors-").string();

template <class Number>
Array array_of(const char* dtype, const std::vector<Number>& values, std::vector<std::int64_t> shape) {
  return {dtype, std::move(shape), std::as_bytes(std::span(values))};
}

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

TEST(Safetensors, ReadsBackWhatWasWrittenWithEveryElementAligned) {
  const TemporaryFolder folder(kPrefix);
  const std::vector<std::uint8_t> bytes = {1, 2, 3};
  const std::vector<float> floats = {1, -2, 3.5f, 0, 5, 6};
  const std::vector<double> doubles = {0.1};
  const Arrays arrays = {{"a", array_of("U8", bytes, {3})},
                         {"b", array_of("F32", floats, {2, 3})},
                         {"c", array_of("F64", doubles, {})},
                         {"d", array_of("F32", std::vector<float>(), {0, 7})}};
  const auto path = folder.path() / "x.safetensors";
  const WrittenFile written = write_safetensors(path, arrays);
  EXPECT_EQ(written.bytes, std::filesystem::file_size(path));
  const ArrayFile read(path, written);
  ASSERT_EQ(read.arrays().size(), arrays.size());
  const std::string contents = read_file(path);
  for (const auto& [name, array] : arrays) {
    const Array& found = read.at(name);
    EXPECT_EQ(found.dtype, array.dtype);
    EXPECT_EQ(found.shape, array.shape);
    EXPECT_TRUE(std::equal(found.bytes.begin(), found.bytes.end(), array.bytes.begin(), array.bytes.end()))
        << name;
  }
  EXPECT_EQ((read.at("c").bytes.data() - read.at("b").bytes.data()), -8) << "wide elements come first";
  EXPECT_THROW(read.at("e"), Error);
}

RC_GTEST_PROP(Safetensors, KeepsStateOfAnyKind,
              (const std::vector<float>& floats, const std::vector<double>& doubles,
               const std::vector<std::int64_t>& integers, const std::string& text)) {
  const State state = {{"f/x", floats}, {"d", doubles}, {"i", integers}, {"t", text}};
  const TemporaryFolder folder(kPrefix);
  Arrays arrays;
  add_state(state, "state", arrays);
  write_safetensors(folder.path() / "x", arrays);
  const State read = state_of(ArrayFile(folder.path() / "x").arrays(), "state");
  RC_ASSERT(read.size() == state.size());
  // By their bytes: a NaN is not equal to itself.
  Arrays again;
  add_state(read, "state", again);
  for (const auto& [name, array] : arrays)
    RC_ASSERT(std::equal(array.bytes.begin(), array.bytes.end(), again.at(name).bytes.begin(),
                         again.at(name).bytes.end()));
}

TEST(Safetensors, ByteThatChangedIsNoticed) {
  const TemporaryFolder folder(kPrefix);
  const std::vector<float> floats(100, 1.0f);
  const auto path = folder.path() / "x";
  const WrittenFile written = write_safetensors(path, {{"a", array_of("F32", floats, {100})}});
  const std::string good = read_file(path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 1;
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_THROW(ArrayFile(path, written), Error) << at;
  }
  std::ofstream(path, std::ios::binary) << good << "x";
  EXPECT_THROW(ArrayFile(path, written), Error) << "longer";
  std::ofstream(path, std::ios::binary) << good.substr(1);
  EXPECT_THROW(ArrayFile(path, written), Error) << "shorter";
}

TEST(Safetensors, RefusesWhatIsNoSuchFile) {
  const std::string four(4, '\0');
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  EXPECT_EQ(parse_safetensors(file_of(entry("F32", "[1]", "[0,4]"), four), "x").size(), 1u);
  EXPECT_EQ(parse_safetensors(file_of(R"({"__metadata__":{"by":"me"}})", ""), "x").size(), 0u);
  for (
      const std::string& bad :
      {std::string(),
       std::string("1234567"),
       std::string(8, '\xff'),
       file_of("", ""),
       file_of("{", ""),
       file_of("[]", ""),
       file_of(R"({"a":1})", ""),
       file_of(R"({"a":{}})", ""),
       file_of(entry("F31", "[1]", "[0,4]"), four),
       file_of(entry("F32", "[2]", "[0,4]"), four),
       file_of(entry("F32", "[-1]", "[0,4]"), four),
       file_of(entry("F32", "[1.0]", "[0,4]"), four),
       file_of(entry("F32", "1", "[0,4]"), four),
       file_of(entry("F32", "[1]", "[0,4,8]"), four),
       file_of(entry("F32", "[1]", "[4,0]"), four),
       file_of(entry("F32", "[1]", "[4,8]"), four + four),
       file_of(entry("F32", "[1]", "[0,4]"), four + four),
       file_of(entry("F32", "[4611686018427387904, 4]", "[0,0]"), ""),
       file_of(entry("F32", "[9223372036854775807, 0]", "[0,0]"), ""),
       file_of(
           R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           four)})
    EXPECT_THROW(parse_safetensors(bad, "x"), Error) << bad;
}

}  // namespace
}  // namespace accordion
