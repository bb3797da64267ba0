// Content in the format of Zstandard, by libzstd.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace strobe::internal {

// Its binary interface has not changed since libzstd 1.0.
inline constexpr const char* kZstdLibrary = "libzstd.so.1";

// See SymbolFiles::InflateZstd.
std::vector<std::byte> InflateZstd(std::span<const std::byte> compressed, std::size_t max_bytes);

}  // namespace strobe::internal
