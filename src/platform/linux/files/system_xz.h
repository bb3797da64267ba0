// Content in the format of xz, by liblzma.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace strobe::internal {

// See SymbolFiles::InflateXz.
std::vector<std::byte> InflateXz(std::span<const std::byte> compressed, std::size_t max_bytes);

}  // namespace strobe::internal
