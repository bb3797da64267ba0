// SpanSource: an image's bytes in memory. OwnedSource: the same, which it owns. ReaderOf: any
// source as a memory reader.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

class SpanSource final : public ByteSource {
 public:
  explicit SpanSource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) return false;
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return true;
  }
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

class OwnedSource final : public ByteSource {
 public:
  explicit OwnedSource(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
    return SpanSource(bytes_).ReadAt(offset, out);
  }
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }

 private:
  const std::vector<std::byte> bytes_;
};

// A MemoryReader of the source's bytes, whose addresses are places in it. `source` must outlive it.
inline auto ReaderOf(const ByteSource& source) {
  return [&source](std::uint64_t position, std::span<std::uint8_t> bytes) {
    if (position >= source.size()) return std::size_t{0};
    bytes = bytes.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), source.size() - position)));
    return source.ReadAt(position, std::as_writable_bytes(bytes)) ? bytes.size() : 0;
  };
}

}  // namespace strobe::internal
