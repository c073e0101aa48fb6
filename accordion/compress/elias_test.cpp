#include "accordion/compress/elias.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace accordion::elias {
namespace {

using Bytes = std::vector<std::byte>;

TEST(Elias, WritesTheCodesOfTheBook) {
  // 1: 0; 2: 10 0; 3: 11 0; 4: 10 100 0; 16: 10 100 10000 0; each in turn, low bits first.
  const std::string expected =
      "0"
      "100"
      "110"
      "101000"
      "10100100000";
  Bytes out(4);
  Writer writer(out);
  for (std::uint32_t number : {1, 2, 3, 4, 16}) writer.number(number);
  ASSERT_EQ(writer.finish(), 3u);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(out[i / 8] >> (i % 8) & std::byte{1}), expected[i] - '0') << i;
  EXPECT_EQ(length(16), 11);
}

TEST(Elias, ReadsWhatItWrote) {
  std::mt19937 generator(1);
  std::vector<std::uint32_t> numbers;
  std::size_t bits = 0;
  for (std::uint32_t number = 1; number < 300; ++number) numbers.push_back(number);
  for (int i = 0; i < 3000; ++i) numbers.push_back((generator() >> generator() % 32) | 1);
  numbers.push_back(~0u);
  for (std::uint32_t number : numbers) bits += static_cast<std::size_t>(length(number)) + 32;
  Bytes out((bits + 7) / 8);  // Exactly: no byte beyond may be touched.
  Writer writer(out);
  for (std::uint32_t number : numbers) {
    writer.number(number);
    writer.bits(number, 32);
  }
  ASSERT_EQ(writer.finish(), out.size());
  Reader reader(out, "test", 2);
  for (std::uint32_t number : numbers) {
    ASSERT_EQ(reader.number(), number);
    ASSERT_EQ(reader.bits(32), number);
  }
  reader.finish();
}

TEST(Elias, LevelsComeBack) {
  std::mt19937 generator(2);
  for (std::size_t n : {0, 1, 7, 8, 9, 100, 1000})
    for (unsigned sparse : {1, 3, 50}) {
      std::vector<std::int8_t> levels(n), back(n);
      for (std::int8_t& level : levels)
        level = static_cast<std::int8_t>(generator() % sparse == 0 ? static_cast<int>(generator() % 255) - 127
                                                                   : 0);
      Bytes out(8 + 4 * n);
      Writer writer(out);
      writer.levels(levels);
      out.resize(writer.finish());
      Reader reader(out, "test", 2);
      reader.levels(n, 127, [&](std::size_t i, int level) { back[i] = static_cast<std::int8_t>(level); });
      reader.finish();
      EXPECT_EQ(back, levels);
    }
}

std::string message_of(const Bytes& bytes, std::size_t n, std::uint32_t most) {
  try {
    Reader reader(bytes, "test", 2);
    reader.levels(n, most, [](std::size_t, int) {});
    reader.finish();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Elias, RefusesWhatCannotBeRight) {
  const std::vector<std::int8_t> levels = {0, 0, 5, 0, -3};
  Bytes out(8);
  Writer writer(out);
  writer.levels(levels);
  out.resize(writer.finish());
  EXPECT_EQ(message_of(out, 5, 5), "");
  EXPECT_EQ(message_of(out, 5, 4), "test: message from rank 2 has level 5, expected at most 4");
  EXPECT_EQ(message_of(out, 4, 5), "test: message from rank 2 has entry 4 in a block of 4");
  EXPECT_EQ(message_of(out, 1, 5), "test: message from rank 2 has 2 levels in a block of 1");
  for (std::size_t bytes = 0; bytes + 1 < out.size(); ++bytes)
    EXPECT_EQ(message_of(Bytes(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes)), 5, 5),
              "test: message from rank 2 ends early");
  Bytes longer = out;
  longer.resize(out.size() + 1);
  EXPECT_EQ(message_of(longer, 5, 5), "test: message from rank 2 goes on after the last block");
  EXPECT_EQ(message_of(Bytes(40, std::byte{0xff}), 5, 5),
            "test: message from rank 2 has a number of more than 32 bits");
}

}  // namespace
}  // namespace accordion::elias
