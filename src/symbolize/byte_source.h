// SpanSource: an image's bytes in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

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

}  // namespace strobe::internal
