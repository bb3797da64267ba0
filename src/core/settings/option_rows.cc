#include "strobe/core/settings/option_rows.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

// A value, made printable and cut to one line for a message.
std::string Shown(std::string_view value) {
  constexpr std::size_t kMaxShownBytes = 100;
  const bool is_cut = value.size() > kMaxShownBytes;
  return absl::StrCat(
      absl::CHexEscape(absl::string_view(value.data(), is_cut ? kMaxShownBytes : value.size())),
      is_cut ? "..." : "");
}

}  // namespace

std::string IgnoredVariable(std::string_view variable, std::string_view value,
                            std::string_view accepted, bool is_secret) {
  return absl::StrCat("strobe: ", std::string(variable),
                      is_secret ? "" : absl::StrCat("=\"", Shown(value), "\""),
                      " is ignored: accepted is ", std::string(accepted));
}

absl::Status WrongField(std::string_view field, std::string_view value, std::string_view accepted) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(field), " is \"", Shown(value),
                                                 "\": accepted is ", std::string(accepted)));
}

}  // namespace strobe::internal
