// The files of page/ and Apache ECharts, as they are, in the program's read-only data. The assembler reads them: a megabyte
// of text is nothing for it, and a lot for a compiler.
#include "accordion/report/page.h"

#define ACCORDION_EMBED(name, file)                                                         \
  asm(".pushsection .rodata\n"                                                              \
      ".global accordion_page_" #name                                                       \
      "\n"                                                                                  \
      "accordion_page_" #name                                                               \
      ":\n"                                                                                 \
      ".incbin \"" file                                                                     \
      "\"\n"                                                                                \
      ".global accordion_page_" #name                                                       \
      "_end\n"                                                                              \
      "accordion_page_" #name                                                               \
      "_end:\n"                                                                             \
      ".popsection\n");                                                                     \
  extern "C" const char accordion_page_##name[], accordion_page_##name##_end[];             \
  std::string_view accordion::page_parts::name() {                                          \
    return {accordion_page_##name,                                                          \
            static_cast<std::size_t>(accordion_page_##name##_end - accordion_page_##name)}; \
  }

ACCORDION_EMBED(markup, ACCORDION_PAGE_MARKUP)
ACCORDION_EMBED(style, ACCORDION_PAGE_STYLE)
ACCORDION_EMBED(library, ACCORDION_PAGE_LIBRARY)
ACCORDION_EMBED(script, ACCORDION_PAGE_SCRIPT)
