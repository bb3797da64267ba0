#include "zstd.h"

namespace strobe::internal {

struct ZstdStream::State {};

ZstdStream::ZstdStream() = default;
ZstdStream::~ZstdStream() = default;
ZstdStream::ZstdStream(ZstdStream&&) noexcept = default;
ZstdStream& ZstdStream::operator=(ZstdStream&&) noexcept = default;

absl::Status ZstdStream::Inflate(std::span<const std::byte> /*compressed*/, const Sink& /*sink*/) {
  return absl::UnimplementedError(
      "the records are compressed by zstd, which is read on Linux only");
}

}  // namespace strobe::internal
