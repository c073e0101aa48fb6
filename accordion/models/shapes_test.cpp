#include "accordion/models/shapes.h"

#include <gtest/gtest.h>

#include <map>

#include "accordion/base/error.h"
#include "accordion/models/describe.h"

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

TEST(Shapes, AreThoseOfTheZoosModels) {
  for (const std::string name : {"resnet18", "vgg19bn"}) {
    const auto shapes = model_shapes(name), tensors = model_tensors(name, ImageShape{3, 32, 32, 10});
    ASSERT_EQ(shapes.size(), tensors.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      EXPECT_EQ(shapes[i].name, tensors[i].name);
      EXPECT_EQ(shapes[i].shape.dims, tensors[i].shape.dims) << shapes[i].name;
    }
  }
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
