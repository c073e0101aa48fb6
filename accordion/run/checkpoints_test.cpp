#include "accordion/run/checkpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>

#include "accordion/base/error.h"
#include "accordion/base/json.h"
#include "accordion/base/temporary_folder.h"
#include "accordion/comm/loopback.h"
#include "accordion/log/checksum.h"
#include "accordion/base/read_file.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;

const std::string kPrefix = (fs::temp_directory_path() / "checkpoints-").string();

// What a rank writes in these tests: its rank and the step.
struct Part {
  std::vector<std::int64_t> values;
  Arrays arrays() const {
    return {{"x", {"I64", {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))}}};
  }
};

std::int64_t value_of(const ArrayFile& file) {
  std::int64_t value = 0;
  std::memcpy(&value, file.at("x").bytes.data(), sizeof value);
  return value;
}

void write_steps(const fs::path& folder, int ranks, int keep, const std::vector<std::int64_t>& steps) {
  run_loopback(ranks, [&](Communicator& control) {
    Checkpoints checkpoints(control.rank() == 0 ? folder : fs::path(), keep, control);
    for (const std::int64_t step : steps) {
      const Part common{{step}}, mine{{100 * step + control.rank()}};
      const std::string failure =
          checkpoints.write({.epoch = 1, .epoch_step = 2, .step = step}, common.arrays(), mine.arrays());
      EXPECT_EQ(failure, "");
    }
  });
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Checkpoints, NewestComesBackToEachRankAndOldOnesGo) {
  for (const int ranks : {1, 3}) {
    const TemporaryFolder folder(kPrefix);
    write_steps(folder.path(), ranks, 2, {5, 9, 10});
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"step-10", "step-9"}));
    run_loopback(ranks, [&](Communicator& control) {
      Checkpoints checkpoints(folder.path(), 2, control);
      const auto loaded = checkpoints.newest([](const std::string& text) { ADD_FAILURE() << text; });
      ASSERT_TRUE(loaded);
      EXPECT_EQ(loaded->manifest.position.step, 10);
      EXPECT_EQ(loaded->manifest.position.epoch, 1);
      EXPECT_EQ(loaded->manifest.position.epoch_step, 2);
      EXPECT_EQ(loaded->manifest.workers, ranks);
      EXPECT_EQ(value_of(loaded->common), 10);
      ASSERT_EQ(loaded->parts.size(), 1u);
      EXPECT_EQ(value_of(loaded->parts[0]), 1000 + control.rank());
    });
  }
}

// Every file of a checkpoint, one byte changed at its beginning, in the middle and at its end, cut short, or gone.
TEST(Checkpoints, DamagedOneIsPassedOverByAllRanks) {
  const TemporaryFolder folder(kPrefix);
  write_steps(folder.path(), 2, 5, {1, 2});
  const fs::path newest = folder.path() / "step-2";
  int cases = 0;
  for (const std::string& name : names_in(newest)) {
    const std::string good = read_file(newest / name);
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{7}, std::size_t{8}, good.size() / 2, good.size() - 1, good.size()}) {
      for (const bool cut : {false, true}) {
        if (cut || at < good.size()) {
          std::string bad = cut ? good.substr(0, at) : good;
          if (!cut) bad[at] = static_cast<char>(bad[at] ^ 4);
          std::ofstream(newest / name, std::ios::binary) << bad;
        }
        if (cut && at == good.size()) fs::remove(newest / name);
        if (!cut && at == good.size()) continue;
        ++cases;
        run_loopback(2, [&](Communicator& control) {
          std::vector<std::string> notes;
          const auto loaded = Checkpoints(folder.path(), 5, control).newest([&](const std::string& text) {
            notes.push_back(text);
          });
          ASSERT_TRUE(loaded) << name << " " << at;
          EXPECT_EQ(loaded->manifest.position.step, 1) << name << " byte " << at << (cut ? " cut" : "");
          EXPECT_EQ(notes.size(), 1u);
        });
      }
    }
    std::ofstream(newest / name, std::ios::binary) << good;
  }
  EXPECT_GT(cases, 40);
  EXPECT_EQ(newest_checkpoint(folder.path(), [](const std::string&) {})->manifest.position.step, 2)
      << "mended";
}

TEST(Checkpoints, OneThatCannotBeWrittenLeavesTheLastOneAndTellsAllRanks) {
  const TemporaryFolder folder(kPrefix);
  write_steps(folder.path(), 2, 2, {1});
  run_loopback(2, [&](Communicator& control) {
    Checkpoints checkpoints(folder.path(), 2, control);
    // A file where a folder should be made, which even root cannot write into.
    if (control.rank() == 0) std::ofstream(folder.path() / "step-2.partial") << "in the way";
    std::int32_t ready = 1;
    control.sum(std::span(&ready, 1));
    const Part part{{7}};
    EXPECT_NE(checkpoints.write({.step = 2}, part.arrays(), part.arrays()), "");
    const auto loaded = checkpoints.newest([](const std::string&) {});
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->manifest.position.step, 1);
  });
}

TEST(Checkpoints, FolderThatARankDoesNotSeeIsRefusedByAll) {
  const TemporaryFolder folder(kPrefix);
  run_loopback(2, [&](Communicator& control) {
    try {
      Checkpoints(control.rank() == 0 ? folder.path() / "missing" : fs::path(), 1, control);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("missing"), std::string::npos) << error.what();
    }
  });
}

TEST(Checkpoints, HalfWrittenOnesAreCleanedUpAndOtherNamesLeftAlone) {
  const TemporaryFolder folder(kPrefix);
  fs::create_directories(folder.path() / "step-3.partial");
  fs::create_directories(folder.path() / "step-x");
  fs::create_directories(folder.path() / "mine");
  write_steps(folder.path(), 1, 1, {4, 5});
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"mine", "step-5", "step-x"}));
}

TEST(Checkpoints, EveryOldRankIsTakenOverOnce) {
  for (int before = 1; before < 9; ++before)
    for (int now = 1; now < 9; ++now) {
      std::vector<int> all;
      for (int rank = 0; rank < now; ++rank)
        for (const int r : predecessors(rank, now, before)) all.push_back(r);
      std::sort(all.begin(), all.end());
      std::vector<int> expected(static_cast<std::size_t>(before));
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected) << before << " to " << now;
    }
}

TEST(Manifest, RefusesWhatIsNone) {
  Manifest manifest{.position = {.epoch = 3, .epoch_step = 4, .step = 5}, .workers = 1, .files = {}};
  for (const char* name : {"common.safetensors", "rank-0.safetensors"}) {
    Manifest::File file;
    file.name = name;
    manifest.files.push_back(file);
  }
  const Json good = Json::parse(manifest_text(manifest));
  EXPECT_EQ(parse_manifest(good.dump(), "m").position.epoch_step, 4);
  // With a checksum that is right, or with the old one.
  const auto with = [&](const char* key, const Json& value, bool right = true) {
    Json bad = good;
    bad[key] = value;
    bad.erase("sha256");
    const std::string text = bad.dump();
    const std::string_view whole = text;
    bad["sha256"] = right ? Json(sha256({&whole, 1})) : good["sha256"];
    return bad.dump();
  };
  EXPECT_EQ(parse_manifest(with("epoch", 4), "m").position.epoch, 4);
  EXPECT_THROW(parse_manifest(with("epoch", 4, false), "m"), Error);
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), with("format", 2),
        with("format", "1"), with("step", -1), with("step", 1.5), with("step", 1e300),
        with("epoch", std::int64_t{1} << 40), with("workers", 0), with("workers", 2),
        with("workers", 1 << 30), with("files", 1), with("files", Json::array({1, 2})),
        with("files", Json::array())})
    EXPECT_THROW(parse_manifest(bad, "m"), Error) << bad;
}

}  // namespace
}  // namespace accordion
