// signSGD with majority vote: a direction without a magnitude.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "accordion/base/options.h"
#include "accordion/compress/compressor.h"
#include "accordion/compress/qsgd.h"
#include "accordion/compress/traits.h"

namespace accordion {

struct SignVoteOptions {
  static constexpr std::string_view kName = "sign-vote";
  static constexpr std::uint8_t kFrameId = 7;
  bool count = false, chunked = false;
  void fields(auto&& field) {
    field("count", count,
          "Add up votes as one byte an entry: flat in the number of ranks, up to 127 of them.");
    field(
        "chunked", chunked,
        "Count votes in chunks, one a rank: flat in their number. A rank abstains where its chunk is zero.");
  }
  // A tenth of a percent of SGD's usual 0.1 is what signSGD's authors use; the limit leaves room to explore.
  CodecTraits traits() const {
    return {.spoken = "signSGD",
            .ranks = count ? RankLimit{127, "count", "a byte holds no more"} : RankLimit{},
            .rate = {0.01, "every weight moves by the learning rate itself in each step", "0.0001 to 0.005"}};
  }
  // A vote's result is -1, 0 or 1, which two bits hold exactly.
  QsgdOptions from_owner() const { return {.bits = "2", .block = 1 << 20}; }
};

std::unique_ptr<Compressor> make(const SignVoteOptions& options, const Shape& shape);

std::size_t payload_bytes(const SignVoteOptions& options, const Shape& shape, int world);

}  // namespace accordion
