#include "backend_parts.h"

#include "absl/strings/str_format.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (const char c : ValidUtf8(text)) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += absl::StrFormat("\\u%04x", static_cast<unsigned char>(c));
    } else {
      json += c;
    }
  }
  return json + '"';
}

}  // namespace strobe::internal
