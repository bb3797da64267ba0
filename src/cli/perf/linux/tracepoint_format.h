// Tracepoint formats: where tracefs says that the fields of a tracepoint are.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "perf/perf_header.h"

namespace strobe::internal {

// What is read of a format file. The largest ones of kernels have some KiB.
inline constexpr std::size_t kMaxFormatBytes = std::size_t{64} << 10;

// The field `name` of `format`, the text of a tracepoint's file "format". InvalidArgument if there
// is no such field, with the names of those that are numbers; or if it is no number of 1, 2, 4 or 8
// bytes.
absl::StatusOr<TracepointField> ParseTracepointField(std::string_view format,
                                                     std::string_view name);

}  // namespace strobe::internal
