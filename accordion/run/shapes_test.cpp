#include "accordion/run/shapes.h"

#include <gtest/gtest.h>

#include <map>

#include "accordion/base/error.h"

namespace accordion {
namespace {

TEST(Shapes, HaveThePublishedParameterCounts) {
  const std::map<std::string, std::size_t> expected = {{"resnet50", 25557032},
                                                       {"resnet101", 44549160},
                                                       {"resnet18", 11173962},
                                                       {"vgg19bn", 20565834},
                                                       {"bert-base", 109482240}};
  for (const std::string& name : shape_names())
    EXPECT_EQ(parameter_count(model_shapes(name)), expected.at(name)) << name;
}

TEST(Shapes, AnUnknownNameIsMetWithTheNearest) {
  try {
    model_shapes("resnet5");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"resnet50\"?"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace accordion
