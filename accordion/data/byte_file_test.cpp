#include "accordion/data/byte_file.h"

#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

using testing::HasSubstr;
using ByteFileTest = WithFolder;

// A few packed bytes can be gigabytes.
TEST_F(ByteFileTest, UnpacksNoMoreThanAllowed) {
  write_gzip(file("zeros"), Bytes(5'000'000));
  EXPECT_LT(std::filesystem::file_size(file("zeros")), 10'000u);
  EXPECT_EQ(ByteFile(file("zeros"), 5'000'000).read_rest().size(), 5'000'000u);
  EXPECT_THAT(message_of([&] { ByteFile(file("zeros"), 4'999'999).read_rest(); }),
              HasSubstr("byte 4999999: more bytes follow, expected a file of at most 4999999"));
}

TEST_F(ByteFileTest, TakesNoMemoryForWhatItMayNotRead) {
  write_file(file("few"), Bytes(10));
  EXPECT_THAT(
      message_of([&] { ByteFile(file("few")).read(std::uint64_t{1} << 60, "pixels"); }),
      HasSubstr("byte 0: 1152921504606846976 bytes of pixels, expected a file of at most 4294967296"));
  EXPECT_THAT(message_of([&] { ByteFile(file("few")).read(~std::uint64_t{0}, "pixels"); }),
              HasSubstr("expected a file of at most"));
}

}  // namespace
}  // namespace accordion
