#include "accordion/report/page.h"

#include <array>
#include <random>

#include "accordion/base/error.h"
#include "accordion/base/json.h"

namespace accordion {
namespace {

// Nobody who could slip markup into a page can know it: without it the browser runs no script.
std::string nonce() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 32; ++i) text += "0123456789abcdef"[random() % 16];
  return text;
}

}  // namespace

std::string json_for_page(const Json& data) {
  const std::string plain = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  text.reserve(plain.size());
  // These stand only in strings, where JSON has another way to write them.
  for (const char c : plain) {
    if (c == '<')
      text += "\\u003c";
    else if (c == '>')
      text += "\\u003e";
    else if (c == '&')
      text += "\\u0026";
    else
      text += c;
  }
  return text;
}

std::string report_page(const Json& data, PageKind kind) {
  const std::string secret = nonce(), json = json_for_page(data);
  const std::array<std::pair<std::string_view, std::string_view>, 6> parts = {{
      {"NONCE", secret},
      {"CONNECT", kind == PageKind::kLive ? "'self'" : "'none'"},
      {"KIND", kind == PageKind::kLive ? "live" : "file"},
      {"STYLE", page_parts::style()},
      {"LIBRARY", page_parts::library()},
      {"SCRIPT", page_parts::script()},
  }};
  std::string page;
  // One pass: what is filled in is not searched again.
  std::string_view rest = page_parts::markup();
  for (;;) {
    const std::size_t begin = rest.find("{{"), end = rest.find("}}", begin);
    page += rest.substr(0, begin);
    if (end == std::string_view::npos) return page;
    const std::string_view name = rest.substr(begin + 2, end - begin - 2);
    bool known = name == "DATA";
    if (known) page += json;
    for (const auto& [key, text] : parts)
      if (key == name) page += text, known = true;
    if (!known) throw Error("page.html: {{" + std::string(name) + "}} is not a part of the page");
    rest.remove_prefix(end + 2);
  }
}

}  // namespace accordion
