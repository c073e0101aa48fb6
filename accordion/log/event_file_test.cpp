#include "accordion/log/event_file.h"

#include <gtest/gtest.h>

#include "accordion/base/error.h"

namespace accordion {
namespace {

// RFC 3720, B.4.
TEST(Crc32c, AgreesWithPublishedValues) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

TEST(Crc32c, IsMaskedByARotationAndAConstant) {
  const std::uint32_t crc = crc32c("foo"), masked = masked_crc32c("foo");
  EXPECT_EQ(masked, ((crc >> 15) | (crc << 17)) + 0xa282ead8U);
}

// What is in the files is read back by another reader: tests/train_test.py.
TEST(EventFile, SaysWhereItCannotWrite) {
  try {
    EventFile file("/nowhere/events");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "/nowhere/events: cannot write: No such file or directory");
  }
}

}  // namespace
}  // namespace accordion
