// Stands in for the tree's own list: one codec that the tree does not know.
#pragma once

#include <variant>

#include "accordion/compress/none.h"
#include "added_codec/every_other.h"

namespace accordion {

using CodecOptions = std::variant<NoneOptions, EveryOtherOptions>;

}  // namespace accordion
