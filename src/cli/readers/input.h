// Input: the bytes of a file or of standard input, decompressed, as a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strobe::internal {

// The most bytes of a file after decompression.
inline constexpr std::uint64_t kMaxInputBytes = std::uint64_t{8} << 30;

// Returns the next bytes, which stay valid until the next call; none at the end.
using ByteReader = std::function<absl::StatusOr<std::string_view>()>;

// The file at `path` (UTF-8), or standard input for "-". `progress` is called now and then with the
// number of bytes read so far.
absl::StatusOr<ByteReader> OpenFile(const std::string& path,
                                    std::function<void(std::uint64_t)> progress);
// `bytes`, which must outlive the reader.
ByteReader ReadBytes(std::string_view bytes);
// What `compressed` holds: gzip (of any number of members), zstd (of any number of frames), or
// the bytes themselves.
ByteReader Decompressed(ByteReader compressed);

// A window onto a stream.
class Input {
 public:
  explicit Input(ByteReader reader) : reader_(std::move(reader)) {}

  // Reads until `bytes` bytes are in view, or the end is. Fails on errors of the file, and beyond
  // kMaxInputBytes.
  absl::Status Fill(std::size_t bytes) {
    return view().size() >= bytes || is_end_ ? absl::OkStatus() : FillMore(bytes);
  }
  // The bytes in view. Valid until the next call.
  [[nodiscard]] std::string_view view() const { return std::string_view(buffer_).substr(begin_); }
  void Skip(std::size_t bytes) { begin_ += bytes; }

  // Takes the next line, without its end. False at the end of the stream. Lines longer than
  // `max_bytes` are an error.
  absl::StatusOr<bool> Line(std::string_view& line, std::size_t max_bytes);

 private:
  absl::Status FillMore(std::size_t bytes);

  ByteReader reader_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::uint64_t total_ = 0;
  bool is_end_ = false;
};

}  // namespace strobe::internal
