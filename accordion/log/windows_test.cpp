#include "accordion/log/windows.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "accordion/base/error.h"

namespace accordion {
namespace {

class Windows : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }
  std::vector<RecordedWindow> read(const std::string& text) {
    std::ofstream(file_) << text;
    return read_csv_windows(file_);
  }
  void refuse(const std::string& text, const std::string& expected) {
    try {
      read(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("accordion-windows-" + std::to_string(::getpid()) + ".csv");
};

TEST_F(Windows, AreReadFromATable) {
  const auto norms = read("epoch,layer,norm,lr\n0,a,1.5,0.1\n0,b,2,0.1\r\n1,a,1e-3,0.01\n1,b,0,0.01\n");
  ASSERT_EQ(norms.size(), 2u);
  ASSERT_EQ(norms[0].layers.size(), 2u);
  EXPECT_EQ(norms[0].layers[1].name, "b");
  EXPECT_EQ(norms[1].lr, 0.01);
  EXPECT_EQ(norms[1].layers[0].norm, 1e-3);
  EXPECT_EQ(norms[1].layers[1].norm, 0);
}

TEST_F(Windows, OfABrokenTableAreRefusedWithTheLine) {
  refuse("", "holds no epoch");
  refuse("epoch,norm\n", "line 1");
  refuse("epoch,layer,norm,lr\n0,a,x,0.1\n", "line 2: \"x\", expected a number");
  refuse("epoch,layer,norm,lr\n0,a\n", "expected four columns");
  refuse("epoch,layer,norm,lr\n1,a,1,0.1\n", "epoch 1 where epoch 0 was expected");
  refuse("epoch,layer,norm,lr\n0,a,1,0.1\n0,a,1,0.1\n", "layer a twice");
  refuse("epoch,layer,norm,lr\n0,a,1,0.1\n0,b,1,0.1\n1,a,1,0.1\n", "epoch 1 has 1 layers, expected 2");
  refuse("epoch,layer,norm,lr\n0,a,1,0.1\n1,b,1,0.1\n", "expected the layers of the first epoch");
}

}  // namespace
}  // namespace accordion
