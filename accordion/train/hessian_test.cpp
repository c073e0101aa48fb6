#include "accordion/train/hessian.h"

#include <gtest/gtest.h>

#include <thread>

#include "accordion/base/error.h"
#include "accordion/base/random.h"
#include "accordion/comm/c10d_group.h"
#include "accordion/comm/loopback.h"
#include "accordion/compress/codecs.h"
#include "accordion/ddp/ddp.h"
#include "accordion/launch/free_port.h"
#include "accordion/models/zoo.h"

namespace accordion {
namespace {

using torch::Tensor;
namespace nn = torch::nn;

constexpr ImageShape kInput{1, 8, 8, 3};

ImageSet made_up(std::size_t samples) {
  ImageSet data{{}, {}, {0.5f}, {0.25f}};
  data.train = {kInput.channels, kInput.height, kInput.width, kInput.classes, {}, {}};
  RandomStream random(RandomKey{3});
  for (std::size_t i = 0; i < samples * data.train.image_size(); ++i)
    data.train.pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
  for (std::size_t i = 0; i < samples; ++i)
    data.train.labels.push_back(static_cast<std::uint8_t>(random.below(3)));
  return data;
}

std::vector<std::uint32_t> every_second(std::size_t samples) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 1; i < samples; i += 2) result.push_back(i);
  return result;
}

std::shared_ptr<Network> seeded(const std::string& name) {
  torch::manual_seed(5);
  return make_model(name, kInput);
}

std::vector<float> gaussian(std::size_t n) {
  std::vector<float> v(n);
  RandomStream(RandomKey{17}).normal(v);
  return v;
}

std::size_t elements(const std::vector<Tensor>& tensors) {
  std::size_t count = 0;
  for (const Tensor& tensor : tensors) count += static_cast<std::size_t>(tensor.numel());
  return count;
}

Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(tensor.detach().flatten());
  return torch::cat(parts);
}

Tensor symmetric(std::vector<double> eigenvalues) {
  torch::manual_seed(2);
  const auto n = static_cast<std::int64_t>(eigenvalues.size());
  const Tensor axes = std::get<0>(torch::linalg_qr(torch::randn({n, n}, torch::kDouble)));
  return axes.mm(torch::diag(torch::tensor(eigenvalues, torch::kDouble))).mm(axes.t());
}

TEST(HessianProduct, OfAQuadraticLossHasItsSpectrum) {
  for (const auto& [spectrum, largest] : std::vector<std::pair<std::vector<double>, double>>{
           {{6, 2, 1, 0.5, 0, -1}, 6}, {{-8, 2, 1, 0.5, 0, -1}, 2}}) {
    const Tensor matrix = symmetric(spectrum).to(torch::kFloat);
    // Two parameters, so that what one does to the other's gradient counts.
    const std::vector<Tensor> parameters = {torch::randn({2, 2}).requires_grad_(),
                                            torch::randn({2}).requires_grad_()};
    const Multiply multiply = [&](std::span<const float> v, std::span<float> product) {
      std::fill(product.begin(), product.end(), 0.0f);
      const Tensor x = torch::cat({parameters[0].flatten(), parameters[1]});
      add_hessian_product(0.5 * x.dot(matrix.mv(x)), parameters, v, product);
    };
    std::vector<float> v = gaussian(6);
    EXPECT_NEAR(top_eigenvalue(multiply, v).value, largest, 0.01 * largest);
  }
}

TEST(HessianProduct, IsZeroWhereNothingBends) {
  const std::vector<Tensor> parameters = {torch::ones({3}).requires_grad_(),
                                          torch::ones({2}).requires_grad_()};
  std::vector<float> product(5, 1.0f);
  add_hessian_product(parameters[0].sum(), parameters, gaussian(5), product);
  EXPECT_EQ(product, std::vector<float>(5, 1.0f)) << "a straight loss, and one parameter without part in it";

  std::vector<float> v = gaussian(5);
  add_hessian_product(parameters[1].square().sum(), parameters, v, product);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_FLOAT_EQ(product[i], i < 3 ? 1 : 1 + 2 * v[i]);
}

// In double, because differences of gradients lose half of the digits.
TEST(HessianProduct, IsTheDerivativeOfTheGradientAlongV) {
  for (const char* name : {"cnn", "resnet20"}) {
    const auto model = seeded(name);
    const Tensor images = torch::randn({4, 1, 8, 8}, torch::kDouble), labels = torch::tensor({0, 2, 1, 1});
    model->to(torch::kDouble);
    model->forward(images);  // BatchNorm has seen something.
    model->eval();
    const std::vector<Tensor> parameters = model->parameters();
    const auto loss = [&] { return nn::functional::cross_entropy(model->forward(images), labels); };

    std::vector<float> v = gaussian(elements(parameters)), product(v.size());
    add_hessian_product(loss(), parameters, v, product);

    const Tensor direction = torch::from_blob(v.data(), {static_cast<std::int64_t>(v.size())});
    const auto gradient_at = [&](double distance) {
      torch::NoGradGuard no_grad;
      std::int64_t at = 0;
      for (const Tensor& parameter : parameters) {
        parameter.add_(direction.narrow(0, at, parameter.numel()).view_as(parameter), distance);
        at += parameter.numel();
      }
      const torch::AutoGradMode gradients(true);
      return flat(torch::autograd::grad({loss()}, parameters));
    };
    // Small enough that hardly a ReLU turns in between.
    constexpr double kStep = 1e-7;
    const Tensor ahead = gradient_at(kStep), behind = gradient_at(-2 * kStep);
    const Tensor expected = (ahead - behind) / (2 * kStep);
    const Tensor got = torch::from_blob(product.data(), {static_cast<std::int64_t>(product.size())});
    EXPECT_LT((got - expected).norm().item<double>(), 1e-5 * expected.norm().item<double>()) << name;
    EXPECT_GT(expected.norm().item<double>(), 0.1) << name;
  }
}

// Small enough to write the whole matrix down.
class Softmax final : public Network {
 public:
  Softmax() : linear_(64, 3) { register_module("linear", linear_); }
  Tensor forward(Tensor images) override { return linear_(images.flatten(1)); }

 private:
  nn::Linear linear_;
};

TEST(TopEigenvalue, IsThatOfTheMeanLossOverTheSamples) {
  const ImageSet data = made_up(60);
  torch::manual_seed(1);
  Softmax model;
  // The same loss, all samples at once.
  std::vector<float> pixels;
  std::vector<std::int64_t> classes;
  for (const std::uint32_t i : every_second(60)) {
    for (const std::uint8_t byte : data.train.image(i))
      pixels.push_back((static_cast<float>(byte) / 255 - data.mean[0]) / data.deviation[0]);
    classes.push_back(data.train.labels[i]);
  }
  const Tensor loss = nn::functional::cross_entropy(
      model.forward(torch::from_blob(pixels.data(), {30, 1, 8, 8})), torch::tensor(classes));
  const auto gradients = torch::autograd::grad({loss}, model.parameters(), {}, true, /*create_graph=*/true);
  const Tensor gradient = torch::cat({gradients[0].flatten(), gradients[1].flatten()});
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < gradient.numel(); ++i)
    rows.push_back(flat(torch::autograd::grad({gradient[i]}, model.parameters(), {}, true)));
  const double largest = torch::linalg_eigvalsh(torch::stack(rows).to(torch::kDouble)).max().item<double>();

  const auto alone = make_loopback(1);
  TopEigenvalue sharpness(model, data, every_second(60), 7, *alone[0], 1);
  const EigenvalueEstimate result = sharpness.estimate();
  EXPECT_TRUE(result.converged);
  EXPECT_NEAR(result.value, largest, 0.02 * largest);
}

TEST(TopEigenvalue, IsTheSameWhateverTheNumberOfRanks) {
  const ImageSet data = made_up(50);
  double alone = 0;
  for (const int ranks : {1, 2, 3, 30}) {  // Of thirty ranks five have no sample.
    std::vector<std::shared_ptr<Network>> models;
    for (int rank = 0; rank < ranks; ++rank) models.push_back(seeded("cnn"));
    std::vector<EigenvalueEstimate> results(static_cast<std::size_t>(ranks));
    run_loopback(ranks, [&](Communicator& comm) {
      const auto rank = static_cast<std::size_t>(comm.rank());
      results[rank] = TopEigenvalue(*models[rank], data, every_second(50), 4, comm, 9).estimate();
    });
    if (ranks == 1) alone = results[0].value;
    for (const EigenvalueEstimate& result : results) {
      EXPECT_EQ(result.value, results[0].value);
      EXPECT_EQ(result.iterations, results[0].iterations);
    }
    EXPECT_GT(alone, 0);
    EXPECT_NEAR(results[0].value, alone, 1e-4 * alone) << ranks;
  }
}

TEST(TopEigenvalue, IsFoundSoonerFromTheLastVector) {
  const ImageSet data = made_up(40);
  const auto model = seeded("cnn");
  const auto comm = make_loopback(1);
  TopEigenvalue sharpness(*model, data, every_second(40), 10, *comm[0], 1);
  const EigenvalueEstimate first = sharpness.estimate();
  const EigenvalueEstimate second = sharpness.estimate();
  EXPECT_TRUE(first.converged && second.converged);
  EXPECT_EQ(second.iterations, 2);
  EXPECT_GT(first.iterations, 2);
  EXPECT_NEAR(second.value, first.value, 0.02 * first.value);
}

// Everything that would act differently in training mode, and one module that never is in it.
class Moody final : public Network {
 public:
  Moody() : conv_(nn::Conv2dOptions(1, 4, 3)), norm_(4), frozen_(4), out_(4 * 36, 3) {
    register_module("conv", conv_);
    register_module("norm", norm_);
    register_module("frozen", frozen_);
    register_module("dropout", dropout_);
    register_module("out", out_);
    frozen_->eval();
  }
  Tensor forward(Tensor x) override { return out_(dropout_(frozen_(norm_(conv_(x)).tanh())).flatten(1)); }

 private:
  nn::Conv2d conv_;
  nn::BatchNorm2d norm_, frozen_;
  nn::Dropout dropout_;
  nn::Linear out_;
};

TEST(TopEigenvalue, LeavesNoTrace) {
  const ImageSet data = made_up(20);
  torch::manual_seed(1);
  const auto model = std::make_shared<Moody>();
  nn::functional::cross_entropy(model->forward(torch::randn({4, 1, 8, 8})), torch::tensor({0, 1, 2, 0}))
      .backward();
  std::vector<Tensor> gradients, weights, buffers;
  std::vector<bool> modes;
  for (const Tensor& parameter : model->parameters()) {
    gradients.push_back(parameter.grad().clone());
    weights.push_back(parameter.detach().clone());
  }
  for (const Tensor& buffer : model->buffers()) buffers.push_back(buffer.clone());
  for (const auto& module : model->modules()) modes.push_back(module->is_training());
  const Tensor generator = at::globalContext().defaultGenerator(torch::kCPU).get_state();

  const auto comm = make_loopback(1);
  {
    torch::NoGradGuard no_grad;  // Whatever the caller's mode.
    EXPECT_GT(TopEigenvalue(*model, data, every_second(20), 3, *comm[0], 1).estimate().value, 0);
    EXPECT_FALSE(torch::GradMode::is_enabled());
  }

  EXPECT_TRUE(torch::equal(at::globalContext().defaultGenerator(torch::kCPU).get_state(), generator));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_TRUE(torch::equal(model->parameters()[i].grad(), gradients[i])) << i;
    EXPECT_TRUE(torch::equal(model->parameters()[i], weights[i])) << i;
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) EXPECT_TRUE(torch::equal(model->buffers()[i], buffers[i]));
  for (std::size_t i = 0; i < modes.size(); ++i) EXPECT_EQ(model->modules()[i]->is_training(), modes[i]) << i;
}

// Three steps of two ranks, as threads with process groups of their own; the weights after them.
std::vector<Tensor> train(const ImageSet& data, bool with_estimates) {
  std::vector<std::shared_ptr<Network>> models = {seeded("cnn"), seeded("cnn")};
  const Tensor images = torch::randn({12, 1, 8, 8}), labels = torch::randint(3, {12}, torch::kLong);
  const int port = free_port();
  std::exception_ptr failures[2];
  const auto body = [&](int rank) {
    Group group = c10d_group({.rank = rank, .size = 2, .port = port, .timeout = std::chrono::seconds(20)});
    const auto model = models[static_cast<std::size_t>(rank)];
    DistributedDataParallel<Network> ddp(
        model, group,
        {.bucket_bytes = 512, .gradient_as_bucket_view = true, .control = {.codec = "topk:keep=0.1"}});
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    TopEigenvalue sharpness(*model, data, every_second(20), 3, group.control(), 1);
    for (int step = 0; step < 3; ++step) {
      if (with_estimates) {
        EXPECT_GT(sharpness.estimate().value, 0);
      }
      ddp.zero_grad();
      const Tensor scores = ddp.forward(images.narrow(0, 4 * step + 2 * rank, 2));
      ddp.backward(nn::functional::cross_entropy(scores, labels.narrow(0, 4 * step + 2 * rank, 2)));
      if (with_estimates) sharpness.estimate();  // With gradients there, and not yet used.
      optimizer.step();
    }
    EXPECT_EQ(ddp.end_epoch(0.1).stats.steps, 3);
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return models[0]->parameters();
}

TEST(TopEigenvalue, DataParallelTrainingGoesOnBitByBit) {
  const ImageSet data = made_up(20);
  const auto without = train(data, false), with = train(data, true);
  for (std::size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(torch::equal(with[i], without[i])) << i;
}

TEST(TopEigenvalue, CountsTiedWeightsOnceAndFrozenOnesNever) {
  const ImageSet data = made_up(4);
  const auto comm = make_loopback(1);
  const auto weights = [&](Network& model) {
    return TopEigenvalue(model, data, {1}, 4, *comm[0], 1).vector().size();
  };
  Softmax model;
  EXPECT_EQ(weights(model), 64u * 3 + 3);
  model.register_module("again", model.children()[0]);
  EXPECT_EQ(weights(model), 64u * 3 + 3);
  model.parameters()[1].requires_grad_(false);
  EXPECT_EQ(weights(model), 64u * 3);
}

TEST(TopEigenvalue, RefusesSamplesThatAreNotThere) {
  const ImageSet data = made_up(4);
  const auto model = seeded("cnn");
  const auto comm = make_loopback(1);
  EXPECT_THROW(TopEigenvalue(*model, data, {}, 4, *comm[0], 1), UsageError);
  EXPECT_THROW(TopEigenvalue(*model, data, {4}, 4, *comm[0], 1), UsageError);
  EXPECT_THROW(TopEigenvalue(*model, data, {3}, 0, *comm[0], 1), UsageError);
  for (Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  EXPECT_THROW(TopEigenvalue(*model, data, {3}, 4, *comm[0], 1), UsageError);
}

}  // namespace
}  // namespace accordion
