#include "accordion/compress/codecs.h"

#include <utility>

namespace accordion {
namespace {

// Calls visit(Options{}) for each alternative, in order.
template <class Visit, std::size_t... I>
void for_each_codec(Visit&& visit, std::index_sequence<I...>) {
  (visit(std::variant_alternative_t<I, CodecOptions>{}), ...);
}

template <class Visit>
void for_each_codec(Visit&& visit) {
  for_each_codec(visit, std::make_index_sequence<std::variant_size_v<CodecOptions>>{});
}

}  // namespace

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for_each_codec([&](auto options) { names.emplace_back(options.kName); });
  return names;
}

CodecOptions parse_codec(std::string_view setting) {
  const std::string_view name = setting.substr(0, setting.find(':'));
  const std::string_view fields = setting.substr(std::min(setting.size(), name.size() + 1));
  CodecOptions result;
  bool known = false;
  for_each_codec([&](auto options) {
    if (options.kName != name) return;
    known = true;
    parse_fields(name, fields, options);
    result = options;
  });
  if (!known) throw UsageError(unknown_name("codec", name, codec_names()));
  return result;
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

std::size_t payload_bytes(const CodecOptions& codec, const Shape& shape, int world) {
  return std::visit(
      [&](const auto& options) {
        if constexpr (std::is_same_v<std::decay_t<decltype(options)>, NoneOptions>)
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
        if constexpr (std::is_same_v<std::decay_t<decltype(options)>, NoneOptions>)
          return nullptr;
        else
          return worthwhile(codec, shape, world, routing) ? make(options, shape) : nullptr;
      },
      codec);
}

}  // namespace accordion
