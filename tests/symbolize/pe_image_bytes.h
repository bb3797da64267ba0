// The bytes of a small Windows image, as its file has them and as it lies in memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "strobe/symbolize/pe_image.h"

namespace strobe::testing {

// An image with two sections, one of code; its frame information and its debug directory lie in the
// other.
class ImageBytes {
 public:
  static constexpr std::uint32_t kHeader = 0x80;
  static constexpr std::uint32_t kDebugData = 0x2100;

  ImageBytes() : file_(0x1000), loaded_(0x4000) {
    Put<std::uint16_t>(0, 0x5A4D);
    Put<std::uint32_t>(0x3C, kHeader);
    Put<std::uint32_t>(kHeader, 0x4550);
    Put<std::uint16_t>(kHeader + 4, 0x8664);
    Put<std::uint16_t>(kHeader + 6, 2);           // sections
    Put<std::uint32_t>(kHeader + 8, 0x5F00ABCD);  // the link's time
    Put<std::uint32_t>(kHeader + 12, 0xE00);      // symbols
    Put<std::uint32_t>(kHeader + 16, 7);          // how many
    Put<std::uint16_t>(kHeader + 20, 0xF0);       // the optional header's bytes
    Put<std::uint16_t>(kHeader + 24, 0x20B);
    Put<std::uint64_t>(kHeader + 48, 0x180000000);  // the base
    Put<std::uint32_t>(kHeader + 80, 0x4000);       // the image's bytes
    Put<std::uint32_t>(kHeader + 132, 16);          // directories
    PutDirectory(3, 0x2000, 24);
    PutDirectory(6, 0x2080, 28);
    PutSection(0, {.start = 0x1000,
                   .bytes = 0x800,
                   .file_offset = 0x400,
                   .file_bytes = 0x600,
                   .is_code = true});
    PutSection(1, {.start = 0x2000, .bytes = 0x800, .file_offset = 0xA00, .file_bytes = 0x400});
    PutData<std::uint32_t>(0x2080 + 12, 2);  // CodeView
    PutData<std::uint32_t>(0x2080 + 20, kDebugData);
    PutData<std::uint32_t>(kDebugData, 0x53445352);  // RSDS
    PutData<std::uint32_t>(kDebugData + 4, 0x01234567);
    PutData<std::uint16_t>(kDebugData + 8, 0x89AB);
    PutData<std::uint16_t>(kDebugData + 10, 0xCDEF);
    for (std::uint32_t i = 0; i < 8; ++i)
      PutData<std::uint8_t>(kDebugData + 12 + i, static_cast<std::uint8_t>(0xF0 + i));
    PutData<std::uint32_t>(kDebugData + 20, 11);  // the age
    PutData(kDebugData + 24, std::to_array("C:\\build\\plugin.pdb"));
  }

  template <class T>
  void Put(std::size_t at, T value) {
    std::memcpy(file_.data() + at, &value, sizeof(value));
    std::memcpy(loaded_.data() + at, &value, sizeof(value));
  }
  template <class T>
  void PutData(std::uint32_t position, T value) {
    std::memcpy(loaded_.data() + position, &value, sizeof(value));
    std::memcpy(file_.data() + (position - 0x2000 + 0xA00), &value, sizeof(value));
  }
  void PutDirectory(std::uint32_t number, std::uint32_t position, std::uint32_t bytes) {
    Put(kHeader + 24 + 112 + number * 8, position);
    Put(kHeader + 24 + 112 + number * 8 + 4, bytes);
  }
  void PutSection(std::uint32_t number, const internal::PeImage::Section& section) {
    const std::uint32_t at = kHeader + 24 + 0xF0 + number * 40;
    Put(at, section.name);
    Put(at + 8, section.bytes);
    Put(at + 12, section.start);
    Put(at + 16, section.file_bytes);
    Put(at + 20, section.file_offset);
    Put<std::uint32_t>(at + 36, section.is_code ? 0x60000020 : 0x40000040);
  }

  [[nodiscard]] const std::vector<std::uint8_t>& file() const { return file_; }

  [[nodiscard]] std::optional<internal::PeImage> Open(internal::PeImage::Layout layout,
                                                      std::size_t readable = ~std::size_t{
                                                          0}) const {
    const std::vector<std::uint8_t>& image =
        layout == internal::PeImage::Layout::kFile ? file_ : loaded_;
    return internal::PeImage::Open(
        [&](std::uint64_t position, std::span<std::uint8_t> bytes) {
          const std::size_t end = std::min(image.size(), readable);
          if (position >= end) return std::size_t{0};
          const std::size_t count =
              std::min(bytes.size(), end - static_cast<std::size_t>(position));
          std::copy_n(image.begin() + static_cast<std::ptrdiff_t>(position), count, bytes.begin());
          return count;
        },
        layout);
  }

 private:
  std::vector<std::uint8_t> file_;
  std::vector<std::uint8_t> loaded_;
};

}  // namespace strobe::testing
