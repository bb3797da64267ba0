#include "../../src/encode/html/html_page.h"

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HtmlPageTest, ATitleAndDataStandBetweenItsParts) {
  EXPECT_THAT(std::string(kHtmlPage.before_title), StartsWith("<!doctype html>"));
  EXPECT_THAT(std::string(kHtmlPage.before_title), EndsWith("<title>"));
  EXPECT_THAT(std::string(kHtmlPage.before_data), StartsWith("</title>"));
  EXPECT_THAT(std::string(kHtmlPage.before_data), EndsWith(" id=\"data\">"));
  EXPECT_THAT(std::string(kHtmlPage.after_data), StartsWith("</script>"));
  EXPECT_THAT(std::string(kHtmlPage.after_data), HasSubstr("</html>"));
}

TEST(HtmlPageTest, NoMarkOfItsSourcesIsLeft) {
  for (const std::string_view part :
       {kHtmlPage.before_title, kHtmlPage.before_data, kHtmlPage.after_data}) {
    for (const char* mark :
         {"{{policy}}", "{{style}}", "{{script}}", "{{title}}", "{{data}}", "\r"})
      EXPECT_THAT(std::string(part), Not(HasSubstr(mark)));
  }
}

TEST(HtmlPageTest, ScriptsStandWhereTheyWereJoined) {
  const std::string script(kHtmlPage.after_data);
  const std::size_t begin = script.find("'use strict';");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(script.find("'use strict';", begin + 1), std::string::npos) << "they are one script";
  EXPECT_THAT(script, HasSubstr("\xE2\x80\xA6")) << "characters beyond ASCII are whole";
}

}  // namespace
}  // namespace strobe::internal
