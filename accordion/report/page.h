// A report as one page that needs nothing else: markup, style, script, charts and data in one file.
#pragma once

#include <string>
#include <string_view>

#include "accordion/base/json_fwd.h"

namespace accordion {

enum class PageKind {
  kFile,  // Opens from disk, and asks nobody for anything.
  kLive,  // Is served, and asks its server for newer data.
};

std::string report_page(const Json& data, PageKind kind);

// JSON as it may stand inside a script element: nothing in it ends the element, or begins another.
std::string json_for_page(const Json& data);

// What the page is made of, as embedded in the program.
namespace page_parts {
std::string_view markup();  // With {{STYLE}} and so on where the others go.
std::string_view style();
std::string_view library();  // Apache ECharts.
std::string_view script();
}  // namespace page_parts

}  // namespace accordion
