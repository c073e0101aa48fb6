// Runs a model on given weights and inputs, so that another construction of it can be held against it.
//
// forward MODEL SHAPE WEIGHTS INPUT RESULT
//
// SHAPE is images:CLASSES, text:VOCABULARY:POSITIONS or tables:NUMBERS:SIZE:SIZE:... All files are f32.
// WEIGHTS: every parameter, then every buffer of floats, each in order of registration. INPUT:
// [n][3][32][32], [n][POSITIONS] or [n][numbers, then categories]. RESULT: scores in evaluation; then, with
// nothing forgotten, the same in training, where dropout draws from torch's generator, seeded with 1; the
// buffers as training leaves them.
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace {

using namespace accordion;

torch::Tensor read(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error(std::string("forward: cannot read ") + path);
  torch::Tensor values = torch::empty({static_cast<std::int64_t>(file.tellg()) / 4});
  file.seekg(0);
  file.read(static_cast<char*>(values.data_ptr()), values.numel() * 4);
  return values;
}

struct Given {
  InputShape shape;
  torch::Tensor input;
};

Given read_input(const std::string& shape, const char* path) {
  std::istringstream words(shape);
  std::string kind;
  std::getline(words, kind, ':');
  std::vector<int> sizes;
  for (std::string size; std::getline(words, size, ':');) sizes.push_back(std::stoi(size));
  const torch::Tensor values = read(path);
  if (kind == "images") return {ImageShape{3, 32, 32, sizes.at(0)}, values.view({-1, 3, 32, 32})};
  if (kind == "text") return {TextShape{sizes.at(0)}, values.view({-1, sizes.at(1)}).to(torch::kLong)};
  if (kind != "tables") throw std::runtime_error("forward: unknown shape " + shape);
  const TableShape table{sizes.at(0), {sizes.begin() + 1, sizes.end()}};
  return {table, values.view({-1, table.numbers + static_cast<std::int64_t>(table.tables.size())})};
}

void forward(char** arguments) {
  const auto [shape, input] = read_input(arguments[1], arguments[3]);
  const auto model = make_model(arguments[0], shape);
  std::vector<torch::Tensor> tensors = model->parameters(), statistics;
  for (const torch::Tensor& buffer : model->buffers())
    if (buffer.is_floating_point()) statistics.push_back(buffer);
  tensors.insert(tensors.end(), statistics.begin(), statistics.end());

  const torch::NoGradGuard no_grad;
  const torch::Tensor weights = read(arguments[2]);
  std::int64_t place = 0;
  for (torch::Tensor& tensor : tensors) {
    if (place + tensor.numel() > weights.numel()) throw std::runtime_error("forward: the weights end early");
    tensor.copy_(weights.narrow(0, place, tensor.numel()).view_as(tensor));
    place += tensor.numel();
  }
  if (place != weights.numel()) throw std::runtime_error("forward: more weights than the model has");

  std::ofstream out(arguments[4], std::ios::binary);
  const auto write = [&](const torch::Tensor& values) {
    out.write(static_cast<const char*>(values.contiguous().data_ptr()), values.numel() * 4);
  };
  model->eval();
  write(model->forward(input));
  model->train();
  torch::manual_seed(1);
  write(model->forward(input));
  for (const torch::Tensor& buffer : statistics) write(buffer);
  if (!out.flush()) throw std::runtime_error(std::string("forward: cannot write ") + arguments[4]);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 6) throw std::runtime_error("usage: forward MODEL SHAPE WEIGHTS INPUT RESULT");
  forward(argv + 1);
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
