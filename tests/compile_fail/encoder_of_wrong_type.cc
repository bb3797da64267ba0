// refused: encoder.Encode(profile, symbols)
#include "strobe/encode/encoder.h"

struct MyEncoder {
  static constexpr std::string_view kFileSuffix = ".txt";
  static constexpr std::string_view kContentType = "text/plain";
#ifdef REFUSED
  std::string Encode(const strobe::Profile&, const strobe::Symbols&) {
    return "";
  }  // It must be able to fail.
#else
  absl::StatusOr<std::string> Encode(const strobe::Profile&, const strobe::Symbols&) { return ""; }
#endif
};
static_assert(strobe::Encoder<MyEncoder>);
