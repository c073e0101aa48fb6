// The C++ DDP on gradients that a file gives: cpp_ddp SETTING SEED RANK SIZE PORT FOLDER. FOLDER/gradients-RANK holds steps of
// float32 tensors, end to end; FOLDER/shapes a line a tensor. What all ranks then hold goes to FOLDER/means-RANK.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "accordion/comm/c10d_group.h"
#include "accordion/ddp/ddp.h"

using namespace std::string_literals;

namespace {

struct GivenImpl : torch::nn::Module {
  explicit GivenImpl(const std::vector<std::vector<std::int64_t>>& shapes) {
    for (const auto& shape : shapes)
      register_parameter(std::to_string(parameters().size()), torch::zeros(shape));
  }
  torch::Tensor forward(const std::vector<torch::Tensor>& gradients) {
    torch::Tensor loss = torch::zeros({});
    const auto all = parameters();
    for (std::size_t i = 0; i < all.size(); ++i) loss = loss + (all[i] * gradients[i]).sum();
    return loss;
  }
};
TORCH_MODULE(Given);

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 7) throw std::runtime_error("usage: cpp_ddp SETTING SEED RANK SIZE PORT FOLDER");
  const std::string setting = argv[1];
  const std::filesystem::path folder = argv[6];
  std::vector<std::vector<std::int64_t>> shapes;
  std::ifstream lines(folder / "shapes");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    auto& shape = shapes.emplace_back();
    for (std::int64_t dim; numbers >> dim;) shape.push_back(dim);
  }
  accordion::Group group = accordion::c10d_group(
      {.rank = std::atoi(argv[3]), .size = std::atoi(argv[4]), .port = std::atoi(argv[5])});
  Given net(shapes);
  accordion::DistributedDataParallel ddp(
      net, group,
      {.control = {.codec = setting}, .guard = accordion::GuardMode::kNone, .seed = std::stoull(argv[2])});
  std::ifstream in(folder / ("gradients-"s + argv[3]), std::ios::binary);
  std::ofstream out(folder / ("means-"s + argv[3]), std::ios::binary);
  while (in.peek() != EOF) {
    std::vector<torch::Tensor> gradients;
    for (const auto& shape : shapes) {
      gradients.push_back(torch::zeros(shape));
      in.read(static_cast<char*>(gradients.back().data_ptr()),
              static_cast<std::streamsize>(gradients.back().nbytes()));
    }
    ddp.zero_grad();
    ddp.backward(ddp.forward(gradients));
    for (const auto& parameter : net->parameters()) {
      const torch::Tensor mean = parameter.grad().contiguous();
      out.write(static_cast<const char*>(mean.data_ptr()), static_cast<std::streamsize>(mean.nbytes()));
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
