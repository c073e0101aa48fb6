// What something is refused with.
#pragma once

#include <string>

#include "accordion/base/error.h"

namespace accordion {

// Nothing where it is not refused; what is of another kind comes through.
template <class Kind = Error>
std::string refusal(const auto& attempt) {
  try {
    attempt();
    return "";
  } catch (const Kind& error) {
    return error.what();
  }
}

}  // namespace accordion
