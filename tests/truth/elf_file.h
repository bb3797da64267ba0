// What the tools of this folder read of an ELF file of 64 bits: its loadable segments and where its
// frame information lies.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "file_bytes.h"
#include "strobe/unwind/cfi_compiler.h"

namespace strobe::testing {

struct ElfSegment {
  Address start = 0;  // as the file numbers its addresses
  Address limit = 0;
  std::span<const std::uint8_t> bytes;
  bool is_code = false;
};

class ElfFile {
 public:
  // Nothing for what is no ELF file of 64 bits for x86-64 or aarch64.
  static std::optional<ElfFile> Read(const std::string& path) {
    std::optional<std::vector<std::uint8_t>> bytes = FileBytes(path);
    if (!bytes) return std::nullopt;
    ElfFile file;
    file.bytes_ = *std::move(bytes);
    if (!file.Parse()) return std::nullopt;
    return file;
  }

  [[nodiscard]] Architecture architecture() const { return architecture_; }
  [[nodiscard]] const std::vector<ElfSegment>& segments() const { return segments_; }
  [[nodiscard]] Address eh_frame_header() const { return eh_frame_header_; }

  // The bytes of the file from `address` to the end of its segment.
  [[nodiscard]] std::span<const std::uint8_t> From(Address address) const {
    for (const ElfSegment& segment : segments_) {
      if (address >= segment.start && address - segment.start < segment.bytes.size()) {
        return segment.bytes.subspan(static_cast<std::size_t>(address - segment.start));
      }
    }
    return {};
  }

  // The frame information of the code in `segment`; nothing where the file has none.
  [[nodiscard]] std::optional<CfiSource> FramesOf(const ElfSegment& segment) const {
    const Address eh_frame = EhFrameAddress(From(eh_frame_header_), eh_frame_header_);
    if (eh_frame == 0) return std::nullopt;
    return CfiSource{.architecture = architecture_,
                     .eh_frame = From(eh_frame),
                     .eh_frame_address = eh_frame,
                     .text_start = segment.start,
                     .text_limit = segment.limit};
  }

 private:
  template <class T>
  bool At(std::uint64_t offset, T& value) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return true;
  }

  bool Parse() {
    Elf64_Ehdr header;
    if (!At(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64)
      return false;
    if (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64) return false;
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN) return false;
    architecture_ = header.e_machine == EM_AARCH64 ? Architecture::kAarch64 : Architecture::kX86_64;
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (!At(header.e_phoff + i * sizeof(segment), segment)) return false;
      if (segment.p_type == PT_GNU_EH_FRAME) eh_frame_header_ = segment.p_vaddr;
      if (segment.p_type != PT_LOAD || segment.p_offset > bytes_.size()) continue;
      const std::size_t size =
          std::min<std::size_t>(segment.p_filesz, bytes_.size() - segment.p_offset);
      segments_.push_back({.start = segment.p_vaddr,
                           .limit = segment.p_vaddr + segment.p_memsz,
                           .bytes = std::span(bytes_).subspan(segment.p_offset, size),
                           .is_code = (segment.p_flags & PF_X) != 0});
    }
    return true;
  }

  std::vector<std::uint8_t> bytes_;  // a move keeps its storage, and with it the spans
  Architecture architecture_ = Architecture::kX86_64;
  std::vector<ElfSegment> segments_;
  Address eh_frame_header_ = 0;
};

}  // namespace strobe::testing
