#include "accordion/data/dataset.h"

#include <algorithm>
#include <cstdlib>

#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

const ImageSet& images(const Dataset& data) {
  return std::get<ImageSet>(data.contents);
}

ImageSet& images(Dataset& data) {
  return std::get<ImageSet>(data.contents);
}

const TextSet& text(const Dataset& data) {
  return std::get<TextSet>(data.contents);
}

class DatasetTest : public WithFolder {
 protected:
  static void write_idx(const fs::path& folder, std::uint32_t side = 28, std::uint64_t seed = 1) {
    fs::create_directories(folder);
    const std::size_t pixels = std::size_t{side} * side;
    write_file(folder / "train-images-idx3-ubyte", idx_images(4, side, side, random_bytes(4 * pixels, seed)));
    write_file(folder / "train-labels-idx1-ubyte", idx_labels(4, {1, 2, 3, 4}));
    write_gzip(folder / "t10k-images-idx3-ubyte.gz",
               idx_images(2, side, side, random_bytes(2 * pixels, seed + 1)));
    write_gzip(folder / "t10k-labels-idx1-ubyte.gz", idx_labels(2, {5, 6}));
  }
  static void write_cifar10(const fs::path& folder) {
    fs::create_directories(folder);
    for (std::uint8_t i = 1; i <= 5; ++i)
      write_file(folder / ("data_batch_" + std::to_string(i) + ".bin"), join({{i}, random_bytes(3072, i)}));
    write_file(folder / "test_batch.bin", join({{9}, random_bytes(3072, 9)}));
  }
};

TEST_F(DatasetTest, FindsTheFolderOrItsParentOrTheRoot) {
  write_idx(file("here/mnist"));
  EXPECT_EQ(images(load_dataset("mnist", file("here/mnist"), {})).train.labels, (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(images(load_dataset("mnist", file("here"), {})).test.labels, (Bytes{5, 6}));
  EXPECT_EQ(images(load_dataset("mnist", {}, file("here"))).train.size(), 4u);
}

TEST_F(DatasetTest, ANamedSubfolderComesFirst) {
  write_idx(file("."), 28, 10);
  write_idx(file("mnist"), 28, 20);
  EXPECT_EQ(find_dataset("mnist", file("."), {}), file(".") / "mnist");
  EXPECT_EQ(find_dataset("fashion-mnist", file("."), {}), file("."));
}

TEST_F(DatasetTest, AnExplicitFolderIsNotReplacedByTheDefault) {
  write_idx(file("root/mnist"));
  fs::create_directories(file("empty"));
  EXPECT_THAT(message_of([&] { load_dataset("mnist", file("empty"), file("root")); }),
              HasSubstr("not found"));
  EXPECT_THAT(message_of<UsageError>([&] { load_dataset("mnist", file("none"), file("root")); }),
              HasSubstr("data-dir=" + file("none").string()));
}

TEST_F(DatasetTest, Cifar10) {
  write_cifar10(file("cifar-10-batches-bin"));
  const Dataset data = load_dataset("cifar10", file("."), {});
  EXPECT_EQ(data.name, "cifar10");
  EXPECT_EQ(images(data).train.labels, (Bytes{1, 2, 3, 4, 5}));
  EXPECT_EQ(images(data).test.labels, (Bytes{9}));
  EXPECT_EQ(images(data).mean.size(), 3u);
  EXPECT_EQ(images(data).deviation.size(), 3u);
}

TEST_F(DatasetTest, Cifar100) {
  fs::create_directories(file("cifar100"));
  write_file(file("cifar100/train.bin"), join({{1, 98}, random_bytes(3072, 1)}));
  write_file(file("cifar100/test.bin"), join({{2, 97}, random_bytes(3072, 2)}));
  const Dataset data = load_dataset("cifar100", {}, file("."));
  EXPECT_EQ(images(data).train.labels, Bytes{98});
  EXPECT_EQ(images(data).test.labels, Bytes{97});
}

TEST_F(DatasetTest, WikiText2UnderBothNames) {
  fs::create_directories(file("wikitext-2"));
  std::ofstream(file("wikitext-2/train.txt")) << "a <unk>\n";
  std::ofstream(file("wikitext-2/test.txt")) << "b a";
  EXPECT_EQ(find_dataset("wikitext2", {}, file(".")), file(".") / "wikitext-2");
  EXPECT_EQ(text(load_dataset("wikitext2", {}, file("."))).test, (std::vector<std::int32_t>{1, 0, 2}));
  EXPECT_EQ(std::get<TextShape>(input_shape(load_dataset("wikitext2", {}, file(".")))).vocabulary, 3);
  // One naming must be complete; a mixture of two is a mistake somewhere.
  fs::rename(file("wikitext-2/test.txt"), file("wikitext-2/wiki.test.tokens"));
  EXPECT_THAT(message_of([&] { load_dataset("wikitext2", {}, file(".")); }),
              HasSubstr("which lacks wiki.train.tokens"));
  write_gzip(file("wikitext-2/wiki.train.tokens.gz"), {'b', ' ', 'a'});
  EXPECT_EQ(text(load_dataset("wikitext2", {}, file("."))).test, (std::vector<std::int32_t>{0, 1, 2}));
}

TEST_F(DatasetTest, WikiText2SaysHowToPlaceIt) {
  EXPECT_THAT(message_of([&] { load_dataset("wikitext2", {}, file("root")); }),
              AllOf(HasSubstr(file("root/wikitext2").string()), HasSubstr("no package registry carries it"),
                    HasSubstr("wiki.train.tokens and wiki.test.tokens"), HasSubstr("CC BY-SA 3.0")));
}

TEST_F(DatasetTest, ASyntheticOneNeedsNoFolder) {
  EXPECT_EQ(find_dataset("clicks", {}, {}), "");
  EXPECT_EQ(find_dataset("clicks", file("none"), file("none")), "");
  EXPECT_EQ(fingerprint(load_dataset("clicks", {}, {})),
            fingerprint(load_dataset("clicks", file("none"), {})));
}

TEST_F(DatasetTest, MissingSaysWhereItLookedAndHowToGetIt) {
  EXPECT_THAT(
      message_of([&] { load_dataset("cifar10", {}, file("root")); }),
      AllOf(HasSubstr(file("root/cifar10").string()), HasSubstr("To get it: accordion data cifar10")));
  EXPECT_THAT(message_of([&] { load_dataset("cifar100", {}, file("root")); }),
              AllOf(HasSubstr(file("root/cifar100").string()), HasSubstr("train.bin and test.bin")));
  EXPECT_THAT(message_of([&] { load_dataset("fashion-mnist", file("."), {}); }),
              HasSubstr("apt-get install dataset-fashion-mnist"));
  EXPECT_THAT(message_of([&] { load_dataset("mnist", {}, {}); }), HasSubstr("none was given"));
}

TEST_F(DatasetTest, NamesTheFileThatIsMissing) {
  write_cifar10(file("cifar10"));
  fs::remove(file("cifar10/data_batch_4.bin"));
  EXPECT_THAT(message_of([&] { load_dataset("cifar10", {}, file(".")); }),
              HasSubstr("which lacks data_batch_4.bin"));
}

TEST_F(DatasetTest, WrongImageSize) {
  write_idx(file("mnist"), 14);
  EXPECT_THAT(message_of([&] { load_dataset("mnist", file("."), {}); }),
              HasSubstr("14 x 14, expected 28 x 28"));
}

TEST_F(DatasetTest, UnknownName) {
  EXPECT_THAT(message_of<UsageError>([&] { load_dataset("cifar11", {}, {}); }),
              HasSubstr("did you mean \"cifar10\"?"));
}

TEST(DataRoot, ComesFromTheVariables) {
  EXPECT_EQ(default_data_root("/data", "/home/me"), "/data");
  EXPECT_EQ(default_data_root(nullptr, "/home/me"), "/home/me/.cache/accordion");
  EXPECT_EQ(default_data_root("", "/home/me"), "/home/me/.cache/accordion");
  EXPECT_EQ(default_data_root(nullptr, nullptr), "");
}

TEST_F(DatasetTest, FingerprintSeesEveryPart) {
  write_cifar10(file("cifar10"));
  const Dataset data = load_dataset("cifar10", {}, file("."));
  EXPECT_EQ(fingerprint(data), fingerprint(load_dataset("cifar10", {}, file("."))));
  std::vector<Dataset> others(8, data);
  images(others[0]).train.pixels.front() ^= 1;
  images(others[1]).train.pixels.back() ^= 1;
  images(others[2]).train.labels[2] ^= 1;
  images(others[3]).test.pixels[1000] ^= 128;
  images(others[4]).test.labels[0] ^= 1;
  images(others[5]).mean[1] += 0.001f;
  images(others[6]).deviation[2] += 0.001f;
  std::swap(images(others[7]).train, images(others[7]).test);
  for (const Dataset& other : others) EXPECT_NE(fingerprint(other), fingerprint(data)) << &other - &others[0];
}

TEST(Fingerprint, SeesEveryPartOfAText) {
  const TextSet text{.vocabulary = {"a", "b"}, .train = {0, 1, 1}, .test = {1, 0}};
  std::vector<TextSet> others(6, text);
  others[0].vocabulary[1] = "c";
  others[1].vocabulary = {"ab", ""};
  others[2].vocabulary.emplace_back("c");
  others[3].train[2] = 0;
  others[4].test[0] = 0;
  others[5].train.push_back(others[5].test[0]);
  for (const TextSet& other : others)
    EXPECT_NE(fingerprint({"x", other}), fingerprint({"x", text})) << &other - &others[0];
  EXPECT_EQ(fingerprint({"x", text}), fingerprint({"x", TextSet(text)}));
  EXPECT_NE(fingerprint({"x", text}), fingerprint({"y", text}));
}

TEST(Fingerprint, SeesEveryPartOfATable) {
  const Table table{
      .numbers = 2, .tables = {5, 3}, .values = {1, 2, 3, 4}, .category = {4, 2, 0, 1}, .labels = {1, 0}};
  const TableSet set{.train = table, .test = table};
  std::vector<TableSet> others(10, set);
  for (std::size_t i = 0; i < others.size(); ++i) {
    Table& part = i < 5 ? others[i].train : others[i].test;
    if (i % 5 == 0) part.numbers = 1;
    if (i % 5 == 1) part.tables[1] = 4;
    if (i % 5 == 2) part.values[3] = 5;
    if (i % 5 == 3) part.category[0] = 3;
    if (i % 5 == 4) part.labels[1] = 1;
    EXPECT_NE(fingerprint({"x", others[i]}), fingerprint({"x", set})) << i;
  }
}

bool same(const ImageShape& a, const ImageShape& b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width && a.classes == b.classes;
}
bool same(const TextShape& a, const TextShape& b) {
  return a.vocabulary == b.vocabulary;
}
bool same(const TableShape& a, const TableShape& b) {
  return a.numbers == b.numbers && a.tables == b.tables;
}
bool same(const auto&, const auto&) {
  return false;
}

std::pair<std::size_t, std::size_t> sizes(const auto& set) {
  return {set.train.size(), set.test.size()};
}

class Facts : public testing::TestWithParam<std::string> {};

TEST_P(Facts, AreWhatIsLoaded) {
  const DatasetFacts facts = dataset_facts(GetParam());
  const fs::path root = default_data_root(std::getenv("ACCORDION_DATA"), std::getenv("HOME"));
  try {
    find_dataset(GetParam(), {}, root);
  } catch (const Error&) {
    GTEST_SKIP() << "this machine does not have " << GetParam();
  }
  const Dataset data = load_dataset(GetParam(), {}, root);
  EXPECT_TRUE(
      std::visit([](const auto& a, const auto& b) { return same(a, b); }, facts.input, input_shape(data)));
  EXPECT_EQ(std::visit([](const auto& set) { return sizes(set); }, data.contents),
            std::pair(facts.train_samples, facts.test_samples));
}

INSTANTIATE_TEST_SUITE_P(DataSets, Facts, testing::ValuesIn(dataset_names()), [](const auto& instance) {
  std::string name = instance.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(FashionMnist, IsWholeAndBalanced) {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";
  if (!fs::exists(folder)) GTEST_SKIP() << "needs the Debian package dataset-fashion-mnist";
  const Dataset data = load_dataset("fashion-mnist", {}, {});
  ASSERT_EQ(images(data).train.size(), 60000u);
  ASSERT_EQ(images(data).test.size(), 10000u);
  const auto per_class = [](const Images& images) {
    std::vector<int> counts(10);
    for (std::uint8_t label : images.labels) ++counts[label];
    return counts;
  };
  EXPECT_THAT(per_class(images(data).train), Each(6000));
  EXPECT_THAT(per_class(images(data).test), Each(1000));
  double sum = 0;
  for (std::uint8_t pixel : images(data).train.pixels) sum += pixel;
  EXPECT_NEAR(sum / 255 / static_cast<double>(images(data).train.pixels.size()), images(data).mean[0], 1e-4);
}

}  // namespace
}  // namespace accordion
