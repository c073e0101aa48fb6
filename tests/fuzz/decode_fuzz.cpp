// libFuzzer's way in. `--settings` lists the codec settings, `--codec=SETTING` chooses one; libFuzzer leaves both
// alone.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "accordion/compress/codec_cases_testing.h"
#include "fuzz/decode.h"

namespace {
accordion::CodecOptions codec;
}

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const char* setting = nullptr;
  for (int i = 1; i < *count; ++i) {
    const char* argument = (*arguments)[i];
    if (std::strcmp(argument, "--settings") == 0) {
      for (const auto& entry : accordion::testing_codecs::codec_entries())
        for (const auto& own : entry.cases) std::puts(own.setting.c_str());
      std::exit(0);
    }
    if (std::strncmp(argument, "--codec=", 8) == 0) setting = argument + 8;
  }
  if (!setting) {
    std::fputs("fuzz_decode: expected --codec=SETTING, or --settings for those there are\n", stderr);
    std::exit(2);
  }
  codec = accordion::parse_codec(setting);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  accordion::decode_bytes(codec, {data, size});
  return 0;
}
