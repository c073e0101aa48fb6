#include "accordion/log/checksum.h"

#include <sys/types.h>  // sha2.h needs it

#include <sha2.h>

#include <array>
#include <cstdint>

namespace accordion {

std::string sha256(std::span<const std::string_view> pieces) {
  SHA2_CTX context;
  SHA256Init(&context);
  for (const std::string_view piece : pieces)
    SHA256Update(&context, reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size());
  std::array<char, SHA256_DIGEST_STRING_LENGTH> text;
  SHA256End(&context, text.data());
  return text.data();
}

}  // namespace accordion
