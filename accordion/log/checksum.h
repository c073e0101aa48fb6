// SHA-256 of bytes: what `sha256sum` prints of a file that holds them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace accordion {

// Of the pieces one after the other, as 64 hexadecimal digits.
std::string sha256(std::span<const std::string_view> pieces);

}  // namespace accordion
