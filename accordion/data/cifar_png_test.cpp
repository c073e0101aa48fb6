#include "accordion/data/cifar_png.h"

#include <png.h>

#include "accordion/data/cifar.h"
#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

using testing::HasSubstr;

class CifarPngTest : public WithFolder {
 protected:
  void write_png(std::uint32_t width, std::uint32_t height, const Bytes& rgb) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = width;
    image.height = height;
    image.format = PNG_FORMAT_RGB;
    ASSERT_TRUE(png_image_write_to_file(&image, file("in.png").c_str(), 0, rgb.data(), 0, nullptr));
  }
  std::string refusal(const Bytes& labels) const {
    return message_of([&] { convert_cifar_png(file("in.png"), labels, file("out.bin")); });
  }
};

TEST_F(CifarPngTest, RowsOfPixelsBecomePlanes) {
  const Bytes rgb = random_bytes(2 * 1024 * 3, 1);
  write_png(1024, 2, rgb);
  convert_cifar_png(file("in.png"), Bytes{4, 9}, file("out.bin"));
  const Images images = read_cifar10({file("out.bin")});
  EXPECT_EQ(images.labels, (Bytes{4, 9}));
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t p = 0; p < 1024; ++p)
        ASSERT_EQ(images.image(i)[c * 1024 + p], rgb[(i * 1024 + p) * 3 + c]);
}

TEST_F(CifarPngTest, RefusesOtherShapesAndDamage) {
  write_png(1023, 2, random_bytes(2 * 1023 * 3, 1));
  EXPECT_THAT(refusal({1, 2}), HasSubstr("in.png: 1023 x 2 pixels, expected 1024 x 2"));
  write_png(1024, 2, random_bytes(2 * 1024 * 3, 1));
  EXPECT_THAT(refusal({1, 2, 3}), HasSubstr("1024 x 2 pixels, expected 1024 x 3"));
  Bytes png = read_whole(file("in.png"));
  png.resize(png.size() / 2);
  write_file(file("in.png"), png);
  EXPECT_THAT(refusal({1, 2}), HasSubstr("in.png: "));
  write_file(file("in.png"), {1, 2, 3});
  EXPECT_THAT(refusal({1, 2}), HasSubstr("in.png: "));
  std::filesystem::remove(file("in.png"));
  EXPECT_THAT(refusal({1, 2}), HasSubstr("in.png: No such file"));
}

TEST_F(CifarPngTest, UnwritableOutput) {
  write_png(1024, 1, random_bytes(1024 * 3, 1));
  EXPECT_THAT(message_of([&] { convert_cifar_png(file("in.png"), Bytes{1}, file("none/out.bin")); }),
              HasSubstr("none/out.bin: cannot write"));
}

TEST_F(CifarPngTest, PackageWithWrongLabels) {
  const auto package = [&] { return message_of([&] { convert_cifar10_package(file("."), file(".")); }); };
  EXPECT_THAT(package(), HasSubstr("train_lables.json: cannot read: No such file"));
  write_file(file("train_lables.json"), Bytes{'[', '1', ']'});
  EXPECT_THAT(package(), HasSubstr("train_lables.json: 1 labels, expected 50000"));
  write_file(file("train_lables.json"), Bytes{'[', '1'});
  EXPECT_THAT(package(), HasSubstr("train_lables.json is not JSON, or was cut short"));
  write_file(file("train_lables.json"), Bytes{'{', '}'});
  EXPECT_THAT(package(), HasSubstr("train_lables.json: a label is an object, expected a list"));
}

}  // namespace
}  // namespace accordion
