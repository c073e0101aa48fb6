#include "accordion/data/streams.h"

#include <algorithm>
#include <string>

#include "accordion/base/error.h"

namespace accordion {
namespace {

void check_within(const char* what, Share share, std::size_t size) {
  if (share.begin > share.end || share.end > size)
    throw UsageError(std::string(what) + " " + std::to_string(share.begin) + " to " +
                     std::to_string(share.end) + " of a text in streams, expected a range within 0 to " +
                     std::to_string(size));
}

}  // namespace

TextStreams::TextStreams(std::span<const std::int32_t> text, std::size_t count, Tail tail)
    : text_(text), count_(count) {
  const std::size_t pairs = text.empty() ? 0 : text.size() - 1;
  if (count == 0 || count > pairs)
    throw UsageError("streams=" + std::to_string(count) + " of a text of " + std::to_string(text.size()) +
                     " tokens, expected " +
                     (pairs == 0 ? "a text of at least 2"
                                 : "1 to " + std::to_string(pairs) + ", a token to predict for each"));
  length_ = (tail == Tail::kDrop ? pairs : pairs + count - 1) / count;
}

void TextStreams::read(Share streams, Share positions, std::span<std::int64_t> inputs,
                       std::span<std::int64_t> targets) const {
  check_within("streams", streams, count_);
  check_within("positions", positions, length_);
  const std::size_t width = positions.size();
  if (inputs.size() != streams.size() * width || targets.size() != inputs.size())
    throw UsageError("room for " + std::to_string(inputs.size()) + " inputs and " +
                     std::to_string(targets.size()) + " targets of a text in streams, expected " +
                     std::to_string(streams.size() * width) + " of each");
  const std::size_t pairs = text_.size() - 1;
  for (std::size_t row = 0; row < streams.size(); ++row) {
    const std::size_t begin = (streams.begin + row) * length_ + positions.begin;
    const std::size_t here = begin < pairs ? std::min(width, pairs - begin) : 0;
    const auto input = inputs.subspan(row * width, width), target = targets.subspan(row * width, width);
    for (std::size_t i = 0; i < here; ++i) {
      input[i] = text_[begin + i];
      target[i] = text_[begin + i + 1];
    }
    std::fill(input.begin() + static_cast<std::ptrdiff_t>(here), input.end(), 0);
    std::fill(target.begin() + static_cast<std::ptrdiff_t>(here), target.end(), kNoTarget);
  }
}

}  // namespace accordion
