#include <gtest/gtest.h>

#include <map>
#include <set>

#include "accordion/base/error.h"
#include "accordion/data/dataset.h"
#include "accordion/models/describe.h"
#include "accordion/models/models_testing.h"
#include "accordion/run/shapes.h"

namespace accordion {
namespace {

constexpr ImageShape kCifar10{3, 32, 32, 10}, kCifar100{3, 32, 32, 100}, kMnist{1, 28, 28, 10};
constexpr TextShape kText{50};
const TableShape kTable{3, {7, 5}};

std::size_t parameters(const std::string& setting, const InputShape& input) {
  return parameter_count(model_tensors(setting, input));
}

std::string refusal(const std::string& setting, const InputShape& input) {
  try {
    make_model(setting, input);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(Models, HaveThePublishedParameterCountsAndSayWhatCanBeCompressed) {
  EXPECT_EQ(parameters("cnn", kMnist), 220234u);
  EXPECT_EQ(parameters("resnet20", kCifar10), 272474u);
  const std::map<std::string, std::pair<std::int64_t, std::int64_t>> published = {
      {"resnet18", {11173962, 11220132}},   {"vgg19bn", {20565834, 39327652}},
      {"senet", {11260354, 11436256}},      {"seresnet18", {11389726, 11436256}},
      {"wideresnet", {36489290, 36546980}}, {"densenet", {1000618, 1035268}},
      {"googlenet", {6166250, 6258500}}};
  std::size_t compared = 0, nominal = 0;
  for (const ModelDescription& model : describe_models()) {
    if (model.name == "resnet18") {
      EXPECT_EQ(model.tensors, 62);
      EXPECT_EQ(model.compressible_tensors, 21);  // 17 convolutions of 3x3, 3 of 1x1, and the last layer.
    }
    if (model.data == "wikitext2-nominal") {
      EXPECT_EQ(model.name, "lstm");
      EXPECT_EQ(model.parameters, 28949319);
      ++nominal;
    }
    const auto found = published.find(model.name);
    if (found == published.end() || !model.data.starts_with("cifar")) continue;
    const auto [cifar10, cifar100] = found->second;
    EXPECT_EQ(model.parameters, model.data == "cifar10" ? cifar10 : cifar100)
        << model.name << " on " << model.data;
    ++compared;
  }
  EXPECT_EQ(compared, 2 * published.size());
  EXPECT_EQ(nominal, 1u);
}

TEST(Models, AreDescribedOnEveryDataSetOfTheirKind) {
  std::set<std::string> described;
  for (const ModelDescription& model : describe_models())
    if (model.name == "cnn") described.insert(model.data);
  for (const std::string& data : dataset_names())
    EXPECT_EQ(described.contains(data), std::holds_alternative<ImageShape>(dataset_facts(data).input))
        << data;
}

TEST(Models, TakeTheFormThatTheDataCallsForUnlessToldWhich) {
  EXPECT_EQ(parameters("vgg19bn:head=512", kCifar10), 20565834u);
  EXPECT_EQ(parameters("vgg19bn:head=512", kCifar100), 20565834u + 90 * 513);
  EXPECT_EQ(parameters("vgg19bn:head=4096", kCifar10), 39327652u - 90 * 4097);
  EXPECT_EQ(parameters("senet:form=pre-activation", kCifar100), 11260354u + 90 * 513);
  EXPECT_EQ(parameters("senet:form=seresnet18", kCifar10), 11389726u);
}

TEST(Models, AreAsWideAsTold) {
  for (const std::string& name : model_names(kCifar10)) {
    EXPECT_EQ(parameters(name + ":width=1", kCifar10), parameters(name, kCifar10));
    const auto half = parameters(name + ":width=0.5", kCifar10),
               tenth = parameters(name + ":width=0.1", kCifar10);
    EXPECT_LT(half, parameters(name, kCifar10) / 3) << name;
    EXPECT_LT(tenth, half / 8) << name;
  }
  EXPECT_EQ(model_tensors("resnet18:width=0.25", kCifar10)[0].shape.dims[0], 16);
  EXPECT_EQ(model_tensors("resnet18:width=0.0001", kCifar10)[0].shape.dims[0], 1);
  EXPECT_EQ(parameters("wideresnet:width=0.1", kCifar10), parameters("wideresnet:width=0.1000", kCifar10));
  EXPECT_GT(parameters("cnn:width=2", kMnist), 2 * parameters("cnn", kMnist));
}

// With statistics at rest: in training, a normalisation takes away again what the bias before it adds.
TEST(Models, GiveScoresAndAGradientToEveryParameter) {
  torch::manual_seed(1);
  for (const ImageShape& images : {kMnist, kCifar10, kCifar100})
    for (const auto& [name, setting, input] : tiny_models(images, 0.25)) {
      auto model = make_model(setting, input);
      model->eval();
      wake_squeezes(*model);
      const MadeUpBatch batch = made_up(input, 2);
      const auto scores = model->forward(batch.input);
      ASSERT_EQ(scores.sizes(), (std::vector<std::int64_t>{batch.targets.size(0), choices(input)})) << name;
      torch::nn::functional::cross_entropy(scores, batch.targets).backward();
      for (const auto& parameter : model->named_parameters()) {
        ASSERT_TRUE(parameter.value().grad().defined()) << name << " " << parameter.key();
        EXPECT_GT(parameter.value().grad().abs().max().item<float>(), 0) << name << " " << parameter.key();
      }
    }
}

TEST(Models, TakeImagesOfOtherSizes) {
  for (const std::string& name : model_names(kCifar10))
    for (const auto& [height, width] : {std::pair(16, 16), std::pair(33, 47), std::pair(64, 64)}) {
      const auto model = make_model(name + ":width=0.05", ImageShape{2, height, width, 7});
      EXPECT_EQ(model->forward(torch::randn({2, 2, height, width})).sizes(),
                (std::vector<std::int64_t>{2, 7}))
          << name << " " << height << "x" << width;
    }
}

TEST(Models, RefuseImagesOfWhichNothingWouldBeLeft) {
  EXPECT_EQ(refusal("densenet", ImageShape{3, 7, 32, 10}),
            "densenet: images of 7x32, expected at least 8x8: it halves them 3 times");
  EXPECT_EQ(refusal("cnn", ImageShape{1, 28, 3, 10}),
            "cnn: images of 28x3, expected at least 4x4: it halves them 2 times");
  EXPECT_EQ(refusal("densenet:width=0.1", ImageShape{3, 8, 8, 10}), "");
}

TEST(Models, AnUnknownNameIsMetWithTheNearest) {
  EXPECT_EQ(refusal("resnet81", kMnist),
            "unknown model \"resnet81\"; did you mean \"resnet18\"? There are: " + join(model_names()));
}

TEST(Models, AreForOneKindOfData) {
  const auto takes = [](const InputShape& input, const std::string& name) {
    const auto names = model_names(input);
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& [name, taken] :
       std::vector<std::pair<std::string, InputShape>>{{"cnn", kMnist}, {"lstm", kText}, {"dlrm", kTable}})
    for (const InputShape& input : {InputShape(kMnist), InputShape(kText), InputShape(kTable)})
      EXPECT_EQ(takes(input, name), input.index() == taken.index()) << name << " " << kind_name(input);
  EXPECT_EQ(model_names(kMnist).size() + model_names(kText).size() + model_names(kTable).size(),
            model_names().size());
  EXPECT_EQ(refusal("lstm", kMnist), "model=lstm learns from text, but the data set holds images");
  EXPECT_EQ(refusal("gpt", kTable), "model=gpt learns from text, but the data set holds tables");
  EXPECT_EQ(refusal("dlrm", kText), "model=dlrm learns from tables, but the data set holds text");
  EXPECT_EQ(refusal("cnn", kText), "model=cnn learns from images, but the data set holds text");
}

TEST(Models, RefuseOptionsThatTheyDoNotHave) {
  EXPECT_EQ(refusal("resnet18:width=0", kMnist), "resnet18: width=0, expected (0, 8]");
  EXPECT_EQ(refusal("resnet18:width", kMnist), "resnet18: width has no value, expected width=VALUE");
  EXPECT_EQ(refusal("resnet18:widht=2", kMnist),
            "resnet18: unknown option \"widht\"; did you mean \"width\"? There are: width");
  EXPECT_NE(refusal("vgg19bn:head=400", kMnist).find("There are: published, 512, 4096"), std::string::npos)
      << refusal("vgg19bn:head=400", kMnist);
}

}  // namespace
}  // namespace accordion
