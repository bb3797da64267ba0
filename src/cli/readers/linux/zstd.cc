#include "readers/zstd.h"

#include <cstdint>
#include <vector>

#include "../../../platform/linux/files/system_library.h"
#include "../../../platform/linux/files/system_zstd.h"

namespace strobe::internal {
namespace {

// ZSTD_inBuffer and ZSTD_outBuffer of <zstd.h>.
struct InBuffer {
  const void* bytes;
  std::size_t size;
  std::size_t position;
};
struct OutBuffer {
  void* bytes;
  std::size_t size;
  std::size_t position;
};

constexpr std::size_t kChunkBytes = std::size_t{128} << 10;

using CreateStream = void*();
using FreeStream = std::size_t(void*);
using DecompressStream = std::size_t(void*, OutBuffer*, InBuffer*);
using IsError = unsigned(std::size_t);

struct Functions {
  CreateStream* create = FindFunction<CreateStream>(kZstdLibrary, "ZSTD_createDStream");
  FreeStream* free = FindFunction<FreeStream>(kZstdLibrary, "ZSTD_freeDStream");
  DecompressStream* decompress =
      FindFunction<DecompressStream>(kZstdLibrary, "ZSTD_decompressStream");
  IsError* is_error = FindFunction<IsError>(kZstdLibrary, "ZSTD_isError");

  [[nodiscard]] bool are_there() const {
    return create != nullptr && free != nullptr && decompress != nullptr && is_error != nullptr;
  }
};

const Functions& Library() {
  static const Functions functions;
  return functions;
}

}  // namespace

struct ZstdStream::State {
  State() {
    if (Library().are_there()) stream = Library().create();
  }
  ~State() {
    if (stream != nullptr) Library().free(stream);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void* stream = nullptr;
  bool is_between_frames = true;
  bool is_held_back = false;  // the last chunk was full: there may be more without more input
  std::vector<std::byte> chunk = std::vector<std::byte>(kChunkBytes);
};

ZstdStream::ZstdStream() = default;
ZstdStream::~ZstdStream() = default;
ZstdStream::ZstdStream(ZstdStream&&) noexcept = default;
ZstdStream& ZstdStream::operator=(ZstdStream&&) noexcept = default;

absl::StatusOr<std::span<const std::byte>> ZstdStream::Next(
    std::span<const std::byte>& compressed) {
  if (state_ == nullptr) state_ = std::make_unique<State>();
  if (state_->stream == nullptr)
    return absl::UnimplementedError(
        "the data is compressed by zstd, and this machine has no libzstd.so.1 (libzstd1)");
  OutBuffer out{state_->chunk.data(), state_->chunk.size(), 0};
  // What the library holds back is given without input, too.
  while (out.position == 0 && (!compressed.empty() || state_->is_held_back)) {
    InBuffer in{compressed.data(), compressed.size(), 0};
    const std::size_t result = Library().decompress(state_->stream, &out, &in);
    if (Library().is_error(result) != 0) return absl::DataLossError("the zstd data is damaged");
    compressed = compressed.subspan(in.position);
    state_->is_between_frames = result == 0;
    state_->is_held_back = out.position == out.size;
  }
  return std::span<const std::byte>(state_->chunk).first(out.position);
}

bool ZstdStream::is_between_frames() const {
  return state_ == nullptr || state_->is_between_frames;
}

}  // namespace strobe::internal
