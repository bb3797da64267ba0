#include "gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"

namespace strobe::internal {
namespace {

// Level 1 takes less than half of the default level's time, for a result that is about an eighth
// larger (a profile of 20,000 stacks); profiles are written every minute and read rarely.
constexpr int kZlibLevel = 1;
constexpr int kGzipWindowBits = 15 + 16;  // the largest window, with a gzip header
constexpr int kMemoryLevel = 8;           // zlib's own default
constexpr int kUnknownSystem =
    255;  // the header's field for the operating system: the same bytes everywhere
constexpr std::size_t kChunkBytes = std::size_t{1} << 30;  // zlib counts in unsigned int

}  // namespace

absl::StatusOr<std::string> Gzip(std::string_view bytes) {
  z_stream stream = {};
  if (deflateInit2(&stream, kZlibLevel, Z_DEFLATED, kGzipWindowBits, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to compress a profile");
  }
  gz_header header = {};
  header.os = kUnknownSystem;
  deflateSetHeader(&stream, &header);

  std::string result(bytes.size() / 4 + 256, '\0');
  std::size_t written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0 && !bytes.empty()) {
      const std::size_t chunk = std::min(bytes.size(), kChunkBytes);
      // zlib does not write to its input; its interface only lacks the const.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(chunk);
      bytes.remove_prefix(chunk);
    }
    if (written == result.size()) result.resize(2 * result.size());
    const std::size_t room = std::min(result.size() - written, kChunkBytes);
    stream.next_out = reinterpret_cast<Bytef*>(&result[written]);
    stream.avail_out = static_cast<uInt>(room);
    status = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    written += room - stream.avail_out;
  }
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return absl::InternalError("zlib could not compress a profile");
  result.resize(written);
  return result;
}

}  // namespace strobe::internal
