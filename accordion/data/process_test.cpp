#include "accordion/data/process.h"

#include "accordion/data/test_files.h"

namespace accordion {
namespace {

using testing::HasSubstr;

class ProcessTest : public WithFolder {};

TEST_F(ProcessTest, RunsInTheFolderWithArgumentsUntouched) {
  run_program({"touch", "a b; $(false) `false` *"}, file("."));
  EXPECT_TRUE(std::filesystem::exists(file("a b; $(false) `false` *")));
}

TEST_F(ProcessTest, HasNoInput) {
  run_program({"cat"}, file("."));  // would wait for ever
}

TEST_F(ProcessTest, FailureShowsTheEndOfTheOutput) {
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

TEST_F(ProcessTest, MissingProgram) {
  EXPECT_THAT(message_of([&] { run_program({"no-such-program"}, file(".")); }),
              HasSubstr("no-such-program: not found in PATH; install it"));
}

}  // namespace
}  // namespace accordion
