// ZstdStream: decompresses a stream of zstd, piece by piece.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"

namespace strobe::internal {

// By the system's libzstd.so.1, which is looked for when the first piece comes: no program needs
// it otherwise.
class ZstdStream {
 public:
  using Sink = std::function<absl::Status(std::span<const std::byte>)>;

  ZstdStream();
  ~ZstdStream();
  ZstdStream(ZstdStream&&) noexcept;
  ZstdStream& operator=(ZstdStream&&) noexcept;

  // Gives what the next piece of the stream holds to `sink`, in chunks of bounded size. An error of
  // the sink is returned at once. InvalidArgument for damaged data, Unimplemented without libzstd.
  absl::Status Inflate(std::span<const std::byte> compressed, const Sink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strobe::internal
