// What the tools of this folder read of a Windows image for x64: where its code and its frame information lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "file_bytes.h"
#include "strobe/unwind/pdata_compiler.h"

namespace strobe::testing {

// Offsets in headers are those of Microsoft's "PE Format".
class PeFile {
 public:
  struct Section {
    std::uint32_t start = 0;
    std::uint32_t limit = 0;
  };

  // Nothing for what is no image for x64.
  static std::optional<PeFile> Read(const std::string& path) {
    std::optional<std::vector<std::uint8_t>> bytes = FileBytes(path);
    if (!bytes) return std::nullopt;
    PeFile file;
    file.bytes_ = *std::move(bytes);
    if (!file.Parse()) return std::nullopt;
    return file;
  }

  // That the file asks to be loaded at.
  [[nodiscard]] std::uint64_t base() const { return base_; }
  [[nodiscard]] const std::vector<Section>& code() const { return code_; }

  // The frame information of the code in `section`. Refers to this file.
  [[nodiscard]] PdataSource FramesOf(const Section& section) const {
    return {.read = [this](std::uint32_t position, std::span<std::uint8_t> bytes) { return Copy(position, bytes); },
            .pdata = pdata_,
            .pdata_bytes = pdata_bytes_,
            .text = section.start,
            .text_limit = section.limit};
  }

 private:
  template <class T>
  [[nodiscard]] T At(std::size_t offset) const {
    T value{};
    if (offset <= bytes_.size() && bytes_.size() - offset >= sizeof(T)) std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  bool Parse() {
    constexpr std::uint16_t kX64 = 0x8664;
    constexpr std::uint16_t kPlusHeader = 0x20B;
    constexpr std::uint32_t kIsCode = 0x20;
    const auto header = At<std::uint32_t>(0x3C);
    if (At<std::uint16_t>(0) != 0x5A4D || At<std::uint32_t>(header) != 0x4550 || At<std::uint16_t>(header + 4) != kX64) return false;
    const std::size_t optional_header = header + 24;
    if (At<std::uint16_t>(optional_header) != kPlusHeader) return false;
    base_ = At<std::uint64_t>(optional_header + 24);
    pdata_ = At<std::uint32_t>(optional_header + 112 + 3 * 8);
    pdata_bytes_ = At<std::uint32_t>(optional_header + 112 + 3 * 8 + 4);
    const std::size_t sections = optional_header + At<std::uint16_t>(header + 20);
    image_.clear();
    for (std::size_t i = 0; i < At<std::uint16_t>(header + 6); ++i) {
      const std::size_t section = sections + i * 40;
      const auto start = At<std::uint32_t>(section + 12);
      const auto size = At<std::uint32_t>(section + 16);
      const auto from = At<std::uint32_t>(section + 20);
      if (from > bytes_.size() || size > bytes_.size() - from || start > kMaxImageBytes || size > kMaxImageBytes) continue;
      if (image_.size() < std::size_t{start} + size) image_.resize(std::size_t{start} + size);
      std::copy_n(bytes_.begin() + from, size, image_.begin() + start);
      if ((At<std::uint32_t>(section + 36) & kIsCode) != 0) code_.push_back({start, start + At<std::uint32_t>(section + 8)});
    }
    return true;
  }

  std::size_t Copy(std::uint32_t position, std::span<std::uint8_t> bytes) const {
    if (position >= image_.size()) return 0;
    const std::size_t count = std::min(bytes.size(), image_.size() - position);
    std::copy_n(image_.begin() + position, count, bytes.begin());
    return count;
  }

  static constexpr std::uint32_t kMaxImageBytes = std::uint32_t{1} << 30;

  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint8_t> image_;  // as it is loaded
  std::uint64_t base_ = 0;
  std::uint32_t pdata_ = 0;
  std::uint32_t pdata_bytes_ = 0;
  std::vector<Section> code_;
};

}  // namespace strobe::testing
