// InflatedSource: the content of a compressed section, with random access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// Inflates from the nearest of kMaxMarks places on, whose state is kept (40 KiB each). So the
// content is never in memory as a whole. For one thread at a time.
class InflatedSource final : public ByteSource {
 public:
  // A larger content is not read, and neither is one that is larger than zlib can make of the
  // compressed bytes.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30;
  static constexpr std::size_t kMaxMarks = 64;

  // The section of an ELF file at `offset`, which begins with a head (see
  // FindCompressedContent). nullptr if it is not compressed by zlib.
  static std::shared_ptr<const InflatedSource> Open(std::shared_ptr<const ByteSource> file,
                                                    std::uint64_t offset, std::uint64_t bytes);

  InflatedSource(std::shared_ptr<const ByteSource> file, std::uint64_t offset, std::uint64_t bytes,
                 std::uint64_t inflated_bytes);
  ~InflatedSource() override;

  [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override;
  [[nodiscard]] std::uint64_t size() const override { return inflated_bytes_; }

 private:
  class Stream;

  std::uint64_t inflated_bytes_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace strobe::internal
