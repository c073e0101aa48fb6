#include "accordion/data/cifar.h"

#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

using testing::HasSubstr;

class CifarTest : public WithFolder {
 protected:
  const Bytes a_ = random_bytes(3072, 1), b_ = random_bytes(3072, 2), c_ = random_bytes(3072, 3);
};

TEST_F(CifarTest, Cifar10JoinsItsFiles) {
  write_file(file("1.bin"), join({{7}, a_, {0}, b_}));
  write_file(file("2.bin"), join({{9}, c_}));
  const Images images = read_cifar10({file("1.bin"), file("2.bin")});
  EXPECT_EQ(images.channels, 3);
  EXPECT_EQ(images.height, 32);
  EXPECT_EQ(images.width, 32);
  EXPECT_EQ(images.classes, 10);
  EXPECT_EQ(images.labels, (Bytes{7, 0, 9}));
  EXPECT_EQ(images.pixels, join({a_, b_, c_}));
}

TEST_F(CifarTest, Cifar100TakesTheFineLabel) {
  write_file(file("train.bin"), join({{19, 99}, a_, {3, 42}, b_}));
  const Images images = read_cifar100(file("train.bin"));
  EXPECT_EQ(images.classes, 100);
  EXPECT_EQ(images.labels, (Bytes{99, 42}));
  EXPECT_EQ(images.pixels, join({a_, b_}));
}

TEST_F(CifarTest, LabelOutOfRangeNamesItsByte) {
  write_file(file("1.bin"), join({{7}, a_, {10}, b_}));
  EXPECT_EQ(message_of([&] { read_cifar10({file("1.bin")}); }),
            file("1.bin").string() + ": byte 3073: label 10, expected 0 to 9");
  write_file(file("1.bin"), join({{0, 0}, a_, {0, 100}, b_}));
  EXPECT_THAT(message_of([&] { read_cifar100(file("1.bin")); }),
              HasSubstr("byte 3075: label 100, expected 0 to 99"));
  write_file(file("1.bin"), join({{0, 0}, a_, {20, 0}, b_}));
  EXPECT_THAT(message_of([&] { read_cifar100(file("1.bin")); }),
              HasSubstr("byte 3074: label 20, expected 0 to 19"));
}

TEST_F(CifarTest, PartOfARecord) {
  const Bytes whole = join({{7}, a_, {0}, b_});
  for (std::size_t length : {0, 1, 3072, 3074, 6145}) {
    write_file(file("1.bin"), Bytes(whole.begin(), whole.begin() + static_cast<long>(length)));
    EXPECT_THAT(
        message_of([&] { read_cifar10({file("1.bin")}); }),
        HasSubstr("byte " + std::to_string(length) + ": the file ends here, " +
                  std::to_string(length % 3073) + " bytes into record " + std::to_string(length / 3073)));
  }
  write_file(file("1.bin"), join({whole, {5}}));
  EXPECT_THAT(message_of([&] { read_cifar10({file("1.bin")}); }), HasSubstr("1 bytes into record 2"));
}

}  // namespace
}  // namespace accordion
