#include "strobe/encode/html_encoder.h"

#include "../gzip.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "html_data.h"
#include "html_page.h"
#include "markup_text.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/profile_view.h"

namespace strobe {
namespace {

constexpr std::size_t kMaxTitleBytes = 200;

// The program's name as HTML: the only text of a profile that the page has outside of its data.
std::string Title(const Profile& profile, bool is_comparison) {
  std::string title;
  internal::AppendMarkupText(title, SanitizedText(profile.program, kMaxTitleBytes));
  if (title.empty()) title = "profile";
  return title + (is_comparison ? ": two profiles compared" : ": profile");
}

absl::StatusOr<std::string> Page(const ProfileView& profile, const ProfileView* base) {
  const absl::StatusOr<std::string> data = internal::PageData(profile, base);
  if (!data.ok()) return data.status();
  const absl::StatusOr<std::string> compressed = internal::Gzip(*data);
  if (!compressed.ok()) return compressed.status();
  const internal::HtmlPage& page = internal::kHtmlPage;
  std::string text(page.before_title);
  text += Title(profile.profile(), base != nullptr);
  text += page.before_data;
  absl::StrAppend(&text, absl::Base64Escape(*compressed));
  text += page.after_data;
  if (text.size() > HtmlEncoder::kMaxPageBytes)
    return absl::ResourceExhaustedError("the profile is too large for a page");
  return text;
}

}  // namespace

absl::StatusOr<std::string> HtmlEncoder::Encode(const Profile& profile, const Symbols& symbols) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
  if (!view.ok()) return view.status();
  return Page(*view, nullptr);
}

absl::StatusOr<std::string> HtmlEncoder::EncodeComparison(const Profile& profile,
                                                          const Symbols& symbols,
                                                          const Profile& base,
                                                          const Symbols& base_symbols) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
  if (!view.ok()) return view.status();
  const absl::StatusOr<ProfileView> base_view = ProfileView::Make(base, base_symbols);
  if (!base_view.ok()) return base_view.status();
  return Page(*view, &*base_view);
}

}  // namespace strobe
