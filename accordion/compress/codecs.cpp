#include "accordion/compress/codecs.h"

#include <algorithm>
#include <utility>

#include "accordion/base/json.h"
#include "accordion/base/setting.h"
#include "accordion/compress/chunked.h"

namespace accordion {

std::vector<std::string> codec_names() {
  return setting_names<CodecOptions>();
}

CodecOptions parse_codec(std::string_view setting) {
  return parse_setting<CodecOptions>("codec", setting);
}

std::string codec_text(const CodecOptions& codec) {
  return std::visit(
      [](auto options) {
        std::string text(options.kName);
        const Json json = to_json(options);
        for (auto field = json.begin(); field != json.end(); ++field) {
          std::string key = field.key();
          std::replace(key.begin(), key.end(), '_', '-');
          text += (field == json.begin() ? ":" : ",") + key + "=" +
                  (field->is_string() ? field->template get<std::string>() : field->dump());
        }
        return text;
      },
      codec);
}

CodecOptions as_published(CodecOptions codec) {
  if (auto* topk = std::get_if<TopKOptions>(&codec)) topk->published = true;
  return codec;
}

void check_levels(std::span<const CodecOptions> levels) {
  for (const CodecOptions& level : levels)
    std::visit(
        [](const auto& options) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(options)>, NoneOptions>)
            make(options, Shape{{1}});
        },
        level);
  const auto is_dgc = [](const CodecOptions& level) { return std::holds_alternative<DgcOptions>(level); };
  const auto with = std::find_if(levels.begin(), levels.end(), is_dgc);
  const auto without = std::find_if_not(levels.begin(), levels.end(), is_dgc);
  if (with != levels.end() && without != levels.end())
    throw UsageError(
        "level " + codec_text(*without) + " beside " + codec_text(*with) +
        ", expected dgc in all levels or in none: it keeps the momentum that others leave to the optimizer");
}

namespace {

template <class Options>
constexpr bool kCanBeChunked = requires(Options options) {
  options.chunked;
};

// What travels to a chunk's owner, and what comes back. A vote's result is -1, 0 or 1, which two bits hold
// exactly.
template <class Options>
auto chunk_codecs(Options options) {
  options.chunked = false;
  if constexpr (std::is_same_v<Options, SignVoteOptions>)
    return std::pair(options, QsgdOptions{.bits = "2", .block = 1 << 20});
  else
    return std::pair(options, options);
}

}  // namespace

std::size_t payload_bytes(const CodecOptions& codec, const Shape& shape, int world) {
  return std::visit(
      [&](const auto& options) {
        using Options = std::decay_t<decltype(options)>;
        if constexpr (kCanBeChunked<Options>)
          if (options.chunked) {
            const auto codecs = chunk_codecs(options);
            return chunked_bytes(
                shape, world, [&](const Shape& chunk) { return payload_bytes(codecs.first, chunk, world); },
                [&](const Shape& chunk) { return payload_bytes(codecs.second, chunk, 1); });
          }
        if constexpr (std::is_same_v<Options, NoneOptions>)
          return shape.count() * sizeof(float);
        else
          return payload_bytes(options, shape, world);
      },
      codec);
}

namespace {

// Whether a tensor is worth its codec.
bool worthwhile(const CodecOptions& codec, const Shape& shape, int world, const Routing& routing) {
  if (shape.dims.size() < 2) return false;
  if (routing.paper) return true;
  if (shape.count() < routing.min_count) return false;
  // Whatever it keeps: a tensor whose momentum is DGC's at one level must be DGC's at all.
  if (std::holds_alternative<DgcOptions>(codec)) return true;
  const auto dense = static_cast<double>(shape.count() * sizeof(float));
  const auto sent = static_cast<double>(payload_bytes(codec, shape, world));
  if (std::holds_alternative<PowerSgdOptions>(codec)) return dense > routing.min_rate * sent;
  // What a threshold sends depends on the gradient; a message that grows past half of it falls back to dense
  // by itself.
  if (std::holds_alternative<ThresholdOptions>(codec)) return true;
  if (const auto* atomo = std::get_if<AtomoOptions>(&codec))
    return atomo->budget < static_cast<double>(std::min(shape.rows(), shape.columns()));
  if (const auto* qsgd = std::get_if<QsgdOptions>(&codec)) return qsgd->coding == "elias" || sent < dense;
  return sent < dense;
}

}  // namespace

std::unique_ptr<Compressor> make_compressor(const CodecOptions& codec, const Shape& shape, int world,
                                            const Routing& routing) {
  return std::visit(
      [&](const auto& options) -> std::unique_ptr<Compressor> {
        using Options = std::decay_t<decltype(options)>;
        if (!worthwhile(codec, shape, world, routing)) return nullptr;
        if constexpr (kCanBeChunked<Options>)
          if (options.chunked) {
            make(options, shape);  // Refuses what cannot be chunked.
            const auto codecs = chunk_codecs(options);
            return make_chunked(
                shape, world, [&](const Shape& chunk) { return make(codecs.first, chunk); },
                [&](const Shape& chunk) { return make(codecs.second, chunk); });
          }
        if constexpr (std::is_same_v<Options, NoneOptions>)
          return nullptr;
        else
          return make(options, shape);
      },
      codec);
}

}  // namespace accordion
