#include "strobe/testing/encoder_conformance.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace strobe::testing {

// The smallest encoder that keeps the contract.
struct SumEncoder {
  static constexpr std::string_view kFileSuffix = ".sum";
  static constexpr std::string_view kContentType = "text/plain";
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols&) {
    std::string text = "sum";
    for (const std::int64_t value : profile.values) absl::StrAppend(&text, " ", value);
    return text;
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sum, EncoderConformance, SumEncoder);

}  // namespace strobe::testing
