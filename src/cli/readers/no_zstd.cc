#include "zstd.h"

namespace strobe::internal {

struct ZstdStream::State {};

ZstdStream::ZstdStream() = default;
ZstdStream::~ZstdStream() = default;
ZstdStream::ZstdStream(ZstdStream&&) noexcept = default;
ZstdStream& ZstdStream::operator=(ZstdStream&&) noexcept = default;

absl::StatusOr<std::span<const std::byte>> ZstdStream::Next(
    std::span<const std::byte>& /*compressed*/) {
  return absl::UnimplementedError(
      "the data is compressed by zstd, which is read on Linux only: decompress it by `zstd -d`");
}

bool ZstdStream::is_between_frames() const { return true; }

}  // namespace strobe::internal
