#include "accordion/models/made_up.h"

namespace accordion {

MadeUpBatch made_up(const ImageShape& shape, int samples, int) {
  return {torch::randn({samples, shape.channels, shape.height, shape.width}),
          torch::randint(shape.classes, {samples}, torch::kLong)};
}

MadeUpBatch made_up(const TextShape& shape, int samples, int positions) {
  auto tokens = torch::randint(shape.vocabulary, {samples, positions + 1}, torch::kLong);
  tokens.select(1, 0).copy_(torch::arange(samples) % shape.vocabulary);
  return {tokens.narrow(1, 0, positions), tokens.narrow(1, 1, positions).flatten()};
}

MadeUpBatch made_up(const TableShape& shape, int samples, int) {
  std::vector<torch::Tensor> columns = {torch::randn({samples, shape.numbers})};
  for (const int categories : shape.tables)
    columns.push_back(torch::randint(categories, {samples, 1}, torch::kFloat));
  return {torch::cat(columns, 1), torch::randint(2, {samples}, torch::kLong)};
}

MadeUpBatch made_up(const InputShape& shape, int samples, int positions) {
  return std::visit([&](const auto& each) { return made_up(each, samples, positions); }, shape);
}

}  // namespace accordion
