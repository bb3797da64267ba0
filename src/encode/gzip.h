#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strobe::internal {

// `bytes` as one gzip member without a name and without a time, so that equal bytes give equal
// members.
absl::StatusOr<std::string> Gzip(std::string_view bytes);

}  // namespace strobe::internal
