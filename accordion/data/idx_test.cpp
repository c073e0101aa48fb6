#include "accordion/data/idx.h"

#include <sys/resource.h>

#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

using testing::HasSubstr;

class IdxTest : public WithFolder {
 protected:
  void write(const Bytes& images, const Bytes& labels) {
    write_file(file("images"), images);
    write_file(file("labels"), labels);
  }
  Images read() const { return read_idx(file("images"), file("labels"), 10); }
  std::string refusal() const {
    return message_of([&] { read(); });
  }

  const Bytes pixels_ = random_bytes(3 * 2 * 4, 1);
  const Bytes good_images_ = idx_images(3, 2, 4, pixels_);
  const Bytes good_labels_ = idx_labels(3, {0, 9, 5});
};

TEST_F(IdxTest, ReadsRawAndGzip) {
  write(good_images_, good_labels_);
  const Images raw = read();
  EXPECT_EQ(raw.channels, 1);
  EXPECT_EQ(raw.height, 2);
  EXPECT_EQ(raw.width, 4);
  EXPECT_EQ(raw.classes, 10);
  EXPECT_EQ(raw.size(), 3u);
  EXPECT_EQ(raw.pixels, pixels_);
  EXPECT_EQ(raw.labels, (Bytes{0, 9, 5}));
  EXPECT_EQ(Bytes(raw.image(2).begin(), raw.image(2).end()), Bytes(pixels_.end() - 8, pixels_.end()));

  write_gzip(file("images"), good_images_);
  write_gzip(file("labels"), good_labels_);
  EXPECT_EQ(read().pixels, pixels_);
  EXPECT_EQ(read().labels, raw.labels);
}

TEST_F(IdxTest, BadMagic) {
  write(good_labels_, good_labels_);
  EXPECT_EQ(refusal(),
            file("images").string() + ": byte 0: magic number 0x00000801, expected 0x00000803 (IDX images)");
  write(good_images_, good_images_);
  EXPECT_THAT(refusal(), HasSubstr("labels: byte 0: magic number 0x00000803, expected 0x00000801"));
}

TEST_F(IdxTest, ImpossibleDimensions) {
  write(idx_images(0, 2, 4, {}), good_labels_);
  EXPECT_THAT(refusal(), HasSubstr("images: byte 4: image count 0"));
  write(idx_images(3, 0, 4, {}), good_labels_);
  EXPECT_THAT(refusal(), HasSubstr("images: byte 8: height 0, expected 1 to 4096"));
  write(idx_images(3, 2, 1u << 31, {}), good_labels_);
  EXPECT_THAT(refusal(), HasSubstr("images: byte 12: width 2147483648, expected 1 to 4096"));
}

TEST_F(IdxTest, CountsMustAgree) {
  write(good_images_, idx_labels(2, {0, 1}));
  EXPECT_THAT(refusal(), HasSubstr("labels: byte 4: 2 labels, expected 3 as there are images in"));
}

TEST_F(IdxTest, LabelOutOfRangeNamesItsByte) {
  write(good_images_, idx_labels(3, {0, 9, 10}));
  EXPECT_THAT(refusal(), HasSubstr("labels: byte 10: label 10, expected 0 to 9"));
}

TEST_F(IdxTest, EveryShorterFileIsRefusedWhereItEnds) {
  for (std::size_t length = 0; length < good_images_.size(); ++length) {
    write(Bytes(good_images_.begin(), good_images_.begin() + static_cast<long>(length)), good_labels_);
    EXPECT_THAT(refusal(), HasSubstr("images: byte " + std::to_string(length) + ": the file ends here"));
  }
  for (std::size_t length = 0; length < good_labels_.size(); ++length) {
    write(good_images_, Bytes(good_labels_.begin(), good_labels_.begin() + static_cast<long>(length)));
    EXPECT_THAT(refusal(), HasSubstr("labels: byte " + std::to_string(length) + ": the file ends here"));
  }
}

TEST_F(IdxTest, TrailingBytes) {
  write(join({good_images_, {0}}), good_labels_);
  EXPECT_THAT(refusal(), HasSubstr("images: byte 40: more bytes after the last image"));
  write(good_images_, join({good_labels_, {0}}));
  EXPECT_THAT(refusal(), HasSubstr("labels: byte 11: more bytes after the last label"));
}

TEST_F(IdxTest, DamagedGzip) {
  write(good_images_, good_labels_);
  write_gzip(file("zipped"), good_images_);
  const Bytes zipped = read_whole(file("zipped"));
  // Below three bytes it is not yet a gzip header.
  for (std::size_t length = 3; length < zipped.size(); ++length) {
    write_file(file("images"), Bytes(zipped.begin(), zipped.begin() + static_cast<long>(length)));
    EXPECT_THAT(refusal(), HasSubstr("images: byte ")) << length << " of " << zipped.size() << " bytes";
  }
  for (std::size_t from_end : {8, 4}) {  // the checksum, the length
    Bytes changed = zipped;
    changed[changed.size() - from_end] ^= 1;
    write_file(file("images"), changed);
    EXPECT_THAT(refusal(), HasSubstr("damaged gzip data"));
  }
}

TEST_F(IdxTest, HugeHeaderAllocatesLittle) {
  write(idx_images(4000000000u, 4096, 4096, {1, 2, 3}), idx_labels(4000000000u, {1, 2, 3}));
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_THAT(refusal(), HasSubstr("labels: byte 11: the file ends here"));
  write(idx_images(250000, 4096, 4096, {1, 2, 3}), idx_labels(250000, Bytes(250000)));
  EXPECT_THAT(refusal(),
              HasSubstr("images: byte 16: 4194304000000 bytes of pixels, expected a file of at most"));
  write(idx_images(250, 4096, 4096, {1, 2, 3}),
        idx_labels(250, Bytes(250)));  // 4 GB: there may be such a file.
  EXPECT_THAT(refusal(), HasSubstr("images: byte 19: the file ends here"));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 20 * 1024) << "kilobytes";
}

TEST_F(IdxTest, MissingFileAndFolder) {
  EXPECT_THAT(refusal(), HasSubstr("images: cannot open: No such file or directory"));
  write(good_images_, good_labels_);
  EXPECT_THAT(message_of([&] { read_idx(file("."), file("labels"), 10); }), HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace accordion
