// signSGD with majority vote: a direction without a magnitude.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"

namespace accordion {

struct SignVoteOptions {
  static constexpr std::string_view kName = "sign-vote";
  bool count = false, chunked = false;
  void fields(auto&& field) {
    field("count", count,
          "Add up votes as one byte an entry: flat in the number of ranks, up to 127 of them.");
    field(
        "chunked", chunked,
        "Count votes in chunks, one a rank: flat in their number. A rank abstains where its chunk is zero.");
  }
};

std::unique_ptr<Compressor> make(const SignVoteOptions& options, const Shape& shape);

std::size_t payload_bytes(const SignVoteOptions& options, const Shape& shape, int world);

}  // namespace accordion
