#include "strobe/worker/shared/serve_end.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

constexpr std::array<const char*, kServeEnds> kTexts = {
    "served",       "failed",   "other user",         "other version", "malformed",
    "wrong memory", "too slow", "left without hello", "no room"};

}  // namespace

ServeEnd RefusalOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied: return ServeEnd::kOtherUser;
    case absl::StatusCode::kUnimplemented: return ServeEnd::kOtherVersion;
    case absl::StatusCode::kFailedPrecondition: return ServeEnd::kMemory;
    case absl::StatusCode::kDeadlineExceeded: return ServeEnd::kSlow;
    case absl::StatusCode::kUnavailable: return ServeEnd::kLeft;
    case absl::StatusCode::kResourceExhausted: return ServeEnd::kNoRoom;
    default: return ServeEnd::kMalformed;
  }
}

std::string TextOf(const ServeEndCounts& counts) {
  const auto count_of = [&](ServeEnd end) { return counts[static_cast<std::size_t>(end)]; };
  const auto refused =
      std::accumulate(counts.begin() + kFirstRefusal, counts.end(), std::uint64_t{0});
  std::string text = absl::StrCat(
      "served ", count_of(ServeEnd::kServed) + count_of(ServeEnd::kFailed), " programs");
  if (count_of(ServeEnd::kFailed) != 0)
    absl::StrAppend(&text, ", of which ", count_of(ServeEnd::kFailed), " failed");
  absl::StrAppend(&text, "; refused ", refused);
  const char* separator = ": ";
  for (std::size_t i = kFirstRefusal; i < kServeEnds; ++i) {
    if (counts[i] == 0) continue;
    absl::StrAppend(&text, separator, counts[i], " ", kTexts[i]);
    separator = ", ";
  }
  return text;
}

}  // namespace strobe::internal
