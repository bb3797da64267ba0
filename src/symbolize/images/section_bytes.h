// SectionBytes: a section of a file, read through a few windows, so that its size does not matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// For one thread at a time. A section that cannot be read has no bytes.
class SectionBytes {
 public:
  // The most bytes that At returns for certain.
  static constexpr std::size_t kMaxAtOnce = 32 * 1024;

  SectionBytes() = default;
  SectionBytes(std::shared_ptr<const ByteSource> source, std::uint64_t offset, std::uint64_t size)
      : source_(std::move(source)), offset_(offset), size_(size) {}

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  // A part of the section; empty if the section does not have so many bytes.
  [[nodiscard]] SectionBytes Sub(std::uint64_t position, std::uint64_t size) const {
    if (position > size_ || size > size_ - position) return {};
    return {source_, offset_ + position, size};
  }

  // The bytes from `position` on: at least kMaxAtOnce, or up to the section's end. Empty beyond
  // that. Valid until the next call.
  std::span<const std::uint8_t> At(std::uint64_t position);

  // Replaces `bytes` by the section's `count` bytes from `position`. False if there are not so
  // many.
  bool Read(std::uint64_t position, std::uint64_t count, std::vector<std::uint8_t>& bytes) const;

  // The text at `position` up to its terminating zero; at most kMaxAtOnce bytes. Valid until the
  // next call.
  std::string_view TextAt(std::uint64_t position);

 private:
  // A window begins at a multiple of kMaxAtOnce, and has twice as many bytes.
  struct Window {
    std::uint64_t position = 0;
    std::uint64_t last_use = 0;
    std::vector<std::uint8_t> bytes;
  };
  static constexpr std::size_t kWindows = 8;

  std::shared_ptr<const ByteSource> source_;
  std::uint64_t offset_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t uses_ = 0;
  std::array<Window, kWindows> windows_;
};

}  // namespace strobe::internal
