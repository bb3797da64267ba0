// ZstdStream: decompresses a stream of zstd, piece by piece.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"

namespace strobe::internal {

// By the system's libzstd.so.1, which is looked for when the first piece comes: no program needs
// it otherwise.
class ZstdStream {
 public:
  ZstdStream();
  ~ZstdStream();
  ZstdStream(ZstdStream&&) noexcept;
  ZstdStream& operator=(ZstdStream&&) noexcept;

  // Decompresses from the front of `compressed`, the next piece of the stream, and leaves there
  // what it has not read. Returns at most 128 KiB, valid until the next call; nothing once the
  // piece holds no more. DataLoss for damaged data, Unimplemented without libzstd.
  absl::StatusOr<std::span<const std::byte>> Next(std::span<const std::byte>& compressed);
  // Whether the stream may end here. It is a sequence of frames.
  [[nodiscard]] bool is_between_frames() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strobe::internal
