// libFuzzer's way in: one program for each codec setting, ACCORDION_FUZZ_CODEC.
#include "fuzz/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const accordion::CodecOptions codec = accordion::parse_codec(ACCORDION_FUZZ_CODEC);
  accordion::decode_bytes(codec, {data, size});
  return 0;
}
