#include "accordion/report/page.h"

#include <gtest/gtest.h>

#include "accordion/base/json.h"

namespace accordion {
namespace {

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Page, HoldsItsPartsOnce) {
  const std::string page = report_page({{"answer", 42}}, PageKind::kFile);
  EXPECT_EQ(page.find("<!doctype html>"), 0U);
  EXPECT_EQ(count(page, R"({"answer":42})"), 1U);
  EXPECT_NE(page.find(page_parts::style()), std::string::npos);
  EXPECT_NE(page.find(page_parts::script()), std::string::npos);
  EXPECT_GT(page_parts::library().size(), 500'000U);
  EXPECT_EQ(count(page, "{{"),
            count(std::string(page_parts::library()) + std::string(page_parts::script()), "{{"));
}

// What is embedded must not end the element that it is in.
TEST(Page, NoPartBreaksOut) {
  for (const std::string_view script : {page_parts::library(), page_parts::script()}) {
    EXPECT_EQ(script.find("</script"), std::string_view::npos);
    EXPECT_EQ(script.find("<!--"), std::string_view::npos);
  }
  EXPECT_EQ(page_parts::style().find("</style"), std::string_view::npos);
}

TEST(Page, DataIsNoMarkup) {
  const Json data = {{"</script><script>alert(1)</script>", "<!-- & {{NONCE}} \xff"}};
  const std::string text = json_for_page(data);
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos) << text;
  EXPECT_EQ(Json::parse(text).begin().key(), "</script><script>alert(1)</script>");
  const std::string page = report_page(data, PageKind::kFile);
  EXPECT_EQ(count(page, "</script>"), 3U);
  EXPECT_NE(page.find("{{NONCE}} \xEF\xBF\xBD"), std::string::npos) << "data is not filled in";
}

TEST(Page, OnlyALivePageMayAskItsServer) {
  EXPECT_NE(report_page({}, PageKind::kFile).find("connect-src 'none'"), std::string::npos);
  EXPECT_NE(report_page({}, PageKind::kLive).find("connect-src 'self'"), std::string::npos);
}

}  // namespace
}  // namespace accordion
