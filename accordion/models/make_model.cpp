// The one part of the zoo that needs torch.
#include "accordion/models/network.h"
#include "accordion/models/zoo.h"

namespace accordion {

std::shared_ptr<Network> make_model(const std::string& setting, const InputShape& input) {
  check_model(setting, input);
  return std::visit(
      [](const auto& options, const auto& shape) -> std::shared_ptr<Network> {
        if constexpr (requires { make(options, shape); })
          return make(options, shape);
        else
          return nullptr;
      },
      parse_model(setting), input);
}

}  // namespace accordion
