// What the tools of this folder read of a Windows image for x64: where its code and its frame
// information lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "file_bytes.h"
#include "strobe/base/visibility.h"
#include "strobe/symbolize/pe_image.h"
#include "strobe/unwind/pdata_compiler.h"

namespace strobe {
namespace STROBE_HIDDEN testing {

class PeFile {
 public:
  struct Section {
    std::uint32_t start = 0;
    std::uint32_t limit = 0;
  };

  // Nothing for what is no image for x64.
  static std::optional<PeFile> Read(const std::string& path) {
    const std::optional<std::vector<std::uint8_t>> bytes = FileBytes(path);
    if (!bytes) return std::nullopt;
    std::optional<internal::PeImage> image = internal::PeImage::Open(
        [&](std::uint64_t position, std::span<std::uint8_t> out) {
          return Copy(*bytes, position, out);
        },
        internal::PeImage::Layout::kFile);
    if (!image) return std::nullopt;
    PeFile file;
    file.image_ = *std::move(image);
    file.Load(*bytes);
    return file;
  }

  // That the file asks to be loaded at.
  [[nodiscard]] std::uint64_t base() const { return image_.preferred_base; }
  [[nodiscard]] const std::vector<Section>& code() const { return code_; }

  // The frame information of the code in `section`. Refers to this file.
  [[nodiscard]] PdataSource FramesOf(const Section& section) const {
    return {
        .read = [this](Address position,
                       std::span<std::uint8_t> bytes) { return Copy(loaded_, position, bytes); },
        .pdata = image_.pdata,
        .pdata_bytes = image_.pdata_bytes,
        .text = section.start,
        .text_limit = section.limit};
  }

 private:
  static constexpr std::size_t kMaxImageBytes = std::size_t{1} << 30;

  static std::size_t Copy(const std::vector<std::uint8_t>& from, std::uint64_t position,
                          std::span<std::uint8_t> bytes) {
    if (position >= from.size()) return 0;
    const std::size_t count =
        std::min(bytes.size(), from.size() - static_cast<std::size_t>(position));
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(position), count, bytes.begin());
    return count;
  }

  void Load(const std::vector<std::uint8_t>& bytes) {
    for (const internal::PeImage::Section& section : image_.sections) {
      const std::size_t end = std::size_t{section.start} + section.file_bytes;
      if (section.file_offset > bytes.size() ||
          section.file_bytes > bytes.size() - section.file_offset || end > kMaxImageBytes)
        continue;
      loaded_.resize(std::max(loaded_.size(), end));
      std::copy_n(bytes.begin() + section.file_offset, section.file_bytes,
                  loaded_.begin() + section.start);
      if (section.is_code) code_.push_back({section.start, section.start + section.bytes});
    }
  }

  internal::PeImage image_;
  std::vector<std::uint8_t> loaded_;
  std::vector<Section> code_;
};

}  // namespace testing
}  // namespace strobe
