#include "accordion/compress/codecs.h"

#include <algorithm>
#include <array>

#include "accordion/base/json.h"
#include "accordion/base/setting.h"
#include "accordion/compress/chunked.h"

namespace accordion {
namespace {

template <class... Options>
constexpr bool frame_ids_differ(const std::variant<Options...>*) {
  std::array ids = {Options::kFrameId...};
  std::sort(ids.begin(), ids.end());
  return std::adjacent_find(ids.begin(), ids.end()) == ids.end();
}
static_assert(frame_ids_differ(static_cast<CodecOptions*>(nullptr)),
              "two codecs have the same kFrameId, by which ranks tell their messages apart");

template <class Options>
CodecTraits traits_of_options(const Options& options) {
  if constexpr (requires { options.traits(); })
    return options.traits();
  else
    return {};
}

}  // namespace

std::vector<std::string> codec_names() {
  return setting_names<CodecOptions>();
}

std::string_view codec_name(const CodecOptions& codec) {
  return std::visit([](const auto& options) { return options.kName; }, codec);
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

std::uint8_t frame_id(const CodecOptions& codec) {
  return std::visit([](const auto& options) { return options.kFrameId; }, codec);
}

CodecTraits traits_of(const CodecOptions& codec) {
  return std::visit([](const auto& options) { return traits_of_options(options); }, codec);
}

std::string spoken_name(const std::string& name) {
  std::string_view spoken;
  for_each_alternative<CodecOptions>([&](const auto& options) {
    if (options.kName == name) spoken = traits_of_options(options).spoken;
  });
  return spoken.empty() ? name : std::string(spoken);
}

std::vector<std::string> usual_settings() {
  std::vector<std::string> settings;
  for_each_alternative<CodecOptions>([&](const auto& options) {
    const CodecTraits traits = traits_of_options(options);
    if (traits.slow || options.kName == NoneOptions::kName) return;
    std::string setting(options.kName);
    if (traits.dial)
      setting += ":" + std::string(traits.dial->option) + "=" + number_text(dial_value(options));
    settings.push_back(std::move(setting));
  });
  return settings;
}

namespace {

// Calls use(value) with the dial's option, whatever its type.
void at_dial(CodecOptions& codec, auto&& use) {
  const std::string_view option = traits_of(codec).dial.value().option;
  std::visit(
      [&](auto& options) {
        options.fields([&](std::string_view name, auto& value, auto&&...) {
          if (name == option) use(value);
        });
      },
      codec);
}

}  // namespace

double dial_value(const CodecOptions& codec) {
  CodecOptions copy = codec;
  double result = 0;
  at_dial(copy, [&](auto& value) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
      result = static_cast<double>(value);
    else
      parse_value(codec_name(codec), "dial", value, result);
  });
  return result;
}

CodecOptions with_dial(CodecOptions codec, double number) {
  at_dial(codec, [&](auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_arithmetic_v<Value>)
      value = static_cast<Value>(number);
    else
      value = number_text(number);
  });
  return codec;
}

CodecOptions as_published(CodecOptions codec) {
  std::visit(
      [](auto& options) {
        if constexpr (requires { options.published; }) options.published = true;
      },
      codec);
  return codec;
}

void check_levels(std::span<const CodecOptions> levels) {
  for (const CodecOptions& level : levels)
    std::visit([](const auto& options) { make(options, Shape{{1}}); }, level);
  const auto has_momentum = [](const CodecOptions& level) { return traits_of(level).momentum.has_value(); };
  const auto with = std::find_if(levels.begin(), levels.end(), has_momentum);
  const auto without = std::find_if_not(levels.begin(), levels.end(), has_momentum);
  if (with != levels.end() && without != levels.end())
    throw UsageError("level " + codec_text(*without) + " beside " + codec_text(*with) + ", expected " +
                     std::string(codec_name(*with)) +
                     " in all levels or in none: it keeps the momentum that others leave to the optimizer");
  for (const CodecOptions& level : levels)
    if (traits_of(level).momentum != traits_of(levels.front()).momentum)
      throw UsageError(
          "level " + codec_text(level) + " beside " + codec_text(levels.front()) +
          ", expected the same momentum in all levels: what has gathered at one goes on at the next");
}

namespace {

void check_ranks(std::string_view name, const RankLimit& limit, int world) {
  if (world > limit.most)
    throw UsageError(std::string(name) + ": " + std::string(limit.option) + "=true on " +
                     std::to_string(world) + " ranks, expected at most " + std::to_string(limit.most) + ": " +
                     std::string(limit.reason));
}

template <class Options>
constexpr bool kCanBeChunked = requires(Options options) {
  options.chunked;
};

// What travels to a chunk's owner, and what comes back.
template <class Options>
Options to_owner(Options options) {
  options.chunked = false;
  return options;
}
template <class Options>
auto from_owner(const Options& options) {
  if constexpr (requires { options.from_owner(); })
    return options.from_owner();
  else
    return to_owner(options);
}

}  // namespace

void check_ranks(std::span<const CodecOptions> levels, int world) {
  for (const CodecOptions& level : levels) check_ranks(codec_name(level), traits_of(level).ranks, world);
}

std::size_t payload_bytes(const CodecOptions& codec, const Shape& shape, int world) {
  return std::visit(
      [&](const auto& options) {
        if constexpr (kCanBeChunked<std::decay_t<decltype(options)>>)
          if (options.chunked)
            return chunked_bytes(
                shape, world,
                [&](const Shape& chunk) { return payload_bytes(to_owner(options), chunk, world); },
                [&](const Shape& chunk) { return payload_bytes(from_owner(options), chunk, 1); });
        return payload_bytes(options, shape, world);
      },
      codec);
}

bool is_compressed(const CodecOptions& codec, const Shape& shape, int world, const Routing& routing) {
  if (shape.dims.size() < 2) return false;
  if (routing.published) return true;
  if (shape.count() < routing.min_count) return false;
  const CodecTraits traits = traits_of(codec);
  if (traits.above_rank &&
      !(*traits.above_rank < static_cast<double>(std::min(shape.rows(), shape.columns()))))
    return false;
  const auto dense = static_cast<double>(shape.count() * sizeof(float));
  const auto sent = static_cast<double>(payload_bytes(codec, shape, world));
  switch (traits.worth) {
    case Worth::kAlways:
      return true;
    case Worth::kIfMuchShorter:
      return dense > routing.min_rate * sent;
    case Worth::kIfShorter:
      return sent < dense;
  }
  return false;
}

std::unique_ptr<Compressor> make_compressor(const CodecOptions& codec, const Shape& shape, int world,
                                            const Routing& routing) {
  return std::visit(
      [&](const auto& options) -> std::unique_ptr<Compressor> {
        if (!is_compressed(codec, shape, world, routing)) return nullptr;
        check_ranks(options.kName, traits_of_options(options).ranks, world);
        auto compressor = make(options, shape);  // Refuses what cannot be chunked, too.
        if constexpr (kCanBeChunked<std::decay_t<decltype(options)>>)
          if (options.chunked)
            return make_chunked(
                shape, world, [&](const Shape& chunk) { return make(to_owner(options), chunk); },
                [&](const Shape& chunk) { return make(from_owner(options), chunk); });
        return compressor;
      },
      codec);
}

}  // namespace accordion
