// HtmlPage: the parts of the page that are the same for every profile. page/embed.py makes them
// the sources beside it.
#pragma once

#include <string_view>

namespace strobe::internal {

// The page is before_title, the title as HTML, before_data, the data in base64, after_data.
struct HtmlPage {
  std::string_view before_title;
  std::string_view before_data;
  std::string_view after_data;
};

extern const HtmlPage kHtmlPage;

}  // namespace strobe::internal
