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

}  // namespace accordion
