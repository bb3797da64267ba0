#include "system_zstd.h"

#include "system_library.h"

namespace strobe::internal {
namespace {

// ZSTD_decompress and ZSTD_isError of <zstd.h>.
using Decompress = std::size_t(void* out, std::size_t out_bytes, const void* in,
                               std::size_t in_bytes);
using IsZstdError = unsigned(std::size_t result);

}  // namespace

std::vector<std::byte> InflateZstd(std::span<const std::byte> compressed, std::size_t max_bytes) {
  static Decompress* const decompress = FindFunction<Decompress>(kZstdLibrary, "ZSTD_decompress");
  static IsZstdError* const is_error = FindFunction<IsZstdError>(kZstdLibrary, "ZSTD_isError");
  if (decompress == nullptr || is_error == nullptr) return {};
  std::vector<std::byte> content(max_bytes);
  const std::size_t result =
      decompress(content.data(), content.size(), compressed.data(), compressed.size());
  if (is_error(result) != 0) return {};
  content.resize(result);
  return content;
}

}  // namespace strobe::internal
