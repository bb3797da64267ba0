#include "system_xz.h"

#include <algorithm>
#include <cstdint>

#include "system_library.h"

namespace strobe::internal {
namespace {

// lzma_stream_buffer_decode of <lzma.h>, whose binary interface has not changed since liblzma 5.0.
using Decode = int(std::uint64_t* memory_limit, std::uint32_t flags, const void* allocator,
                   const std::uint8_t* in, std::size_t* in_position, std::size_t in_size,
                   std::uint8_t* out, std::size_t* out_position, std::size_t out_size);
constexpr int kOk = 0;
constexpr int kOutputIsFull = 10;  // LZMA_BUF_ERROR
constexpr std::uint64_t kMemoryLimit = std::uint64_t{64} << 20;

}  // namespace

std::vector<std::byte> InflateXz(std::span<const std::byte> compressed, std::size_t max_bytes) {
  static Decode* const decode = FindFunction<Decode>("liblzma.so.5", "lzma_stream_buffer_decode");
  if (decode == nullptr) return {};
  std::vector<std::byte> content;
  for (std::size_t size = std::min(max_bytes, 8 * compressed.size()); size != 0;
       size = std::min(max_bytes, 4 * size)) {
    content.resize(size);
    std::uint64_t memory_limit = kMemoryLimit;
    std::size_t read = 0;
    std::size_t written = 0;
    const int result =
        decode(&memory_limit, 0, nullptr, reinterpret_cast<const std::uint8_t*>(compressed.data()),
               &read, compressed.size(), reinterpret_cast<std::uint8_t*>(content.data()), &written,
               content.size());
    if (result == kOk) {
      content.resize(written);
      return content;
    }
    if (result != kOutputIsFull || size == max_bytes) break;
  }
  return {};
}

}  // namespace strobe::internal
