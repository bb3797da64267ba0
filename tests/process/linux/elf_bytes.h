// ElfBytes: the beginning of ELF files, for tests of what is looked at before a program runs.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>

namespace strobe {

// A program for x86-64 that has this loader, or none if that is empty.
inline std::string ElfBytes(const std::string& loader = {}) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_X86_64;
  header.e_phoff = sizeof(header);
  header.e_phnum = loader.empty() ? 0 : 1;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  if (loader.empty()) return bytes;
  Elf64_Phdr segment{};
  segment.p_type = PT_INTERP;
  segment.p_offset = sizeof(header) + sizeof(segment);
  segment.p_filesz = loader.size() + 1;
  bytes.append(reinterpret_cast<const char*>(&segment), sizeof(segment));
  return bytes + loader + '\0';
}

}  // namespace strobe
