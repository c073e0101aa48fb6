#include "accordion/run/shapes.h"

#include <gtest/gtest.h>

#include "accordion/models/describe.h"

namespace accordion {
namespace {

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

}  // namespace
}  // namespace accordion
