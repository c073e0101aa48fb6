#include "accordion/launch/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "accordion/base/error.h"
#include "accordion/base/temporary_folder.h"

namespace accordion {
namespace {

using testing::HasSubstr;

class Program : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

  static std::string message_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 private:
  TemporaryFolder folder_{std::filesystem::temp_directory_path() / "accordion-program-test-"};
};

TEST_F(Program, RunsInTheFolderWithArgumentsUntouched) {
  run_program({"touch", "a b; $(false) `false` *"}, file("."));
  EXPECT_TRUE(std::filesystem::exists(file("a b; $(false) `false` *")));
}

TEST_F(Program, HasNoInput) {
  run_program({"cat"}, file("."));  // would wait for ever
}

TEST_F(Program, FailureShowsTheEndOfTheOutput) {
  EXPECT_EQ(message_of([&] {
              run_program({"sh", "-c", "echo one; echo two >&2; exit 3"}, file("."));
            }),
            "sh -c echo one; echo two >&2; exit 3 failed with status 3:\none\ntwo\n");
  const std::string message = message_of([&] { run_program({"sh", "-c", "seq 100000; exit 1"}, file(".")); });
  EXPECT_THAT(message, HasSubstr("100000\n"));
  EXPECT_LT(message.size(), 2000u);
  EXPECT_THAT(message_of([&] {
                run_program({"sh", "-c", "kill -9 $$"}, file("."));
              }),
              HasSubstr("was ended by signal 9"));
}

TEST_F(Program, MissingProgram) {
  EXPECT_THAT(message_of([&] { run_program({"no-such-program"}, file(".")); }),
              HasSubstr("cannot start \"no-such-program\" in "));
  EXPECT_THAT(message_of([&] { run_program({"no-such-program"}); }),
              HasSubstr("No such file or directory in PATH; is it installed?"));
  EXPECT_THAT(message_of([&] { run_program({"true"}, file("no-such-folder")); }),
              HasSubstr("no-such-folder: No such file or directory"));
}

}  // namespace
}  // namespace accordion
