#include "elf_notes.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace strobe::internal {
namespace {

// ELF's Nhdr, and what a note of a build id has in it.
struct NoteHeader {
  std::uint32_t name_bytes;
  std::uint32_t description_bytes;
  std::uint32_t type;
};
constexpr std::uint32_t kBuildIdType = 3;                       // NT_GNU_BUILD_ID
constexpr std::string_view kBuildIdName("GNU", sizeof("GNU"));  // with its end
constexpr std::size_t kMaxBuildIdBytes = 64;

std::string Hexadecimal(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// If each description, and each next note, begins at a multiple of `alignment`.
std::string BuildIdAt(std::span<const std::uint8_t> notes, std::uint64_t alignment) {
  const auto aligned = [alignment](std::uint64_t offset) {
    return (offset + alignment - 1) / alignment * alignment;
  };
  for (std::uint64_t offset = 0; offset + sizeof(NoteHeader) <= notes.size();) {
    NoteHeader note;
    std::memcpy(&note, notes.data() + offset, sizeof(note));
    const std::uint64_t name = offset + sizeof(note);
    const std::uint64_t description = aligned(name + note.name_bytes);
    const std::uint64_t end = description + note.description_bytes;
    if (end > notes.size()) break;
    if (note.type == kBuildIdType && note.name_bytes == kBuildIdName.size() &&
        std::memcmp(notes.data() + name, kBuildIdName.data(), kBuildIdName.size()) == 0 &&
        note.description_bytes != 0 && note.description_bytes <= kMaxBuildIdBytes)
      return Hexadecimal(notes.subspan(description, note.description_bytes));
    offset = aligned(end);
  }
  return {};
}

}  // namespace

std::string BuildIdIn(std::span<const std::uint8_t> notes, std::uint64_t alignment) {
  constexpr std::uint64_t kWide = 8;
  constexpr std::uint64_t kUsual = 4;
  std::string build_id;
  if (alignment == kWide) build_id = BuildIdAt(notes, kWide);
  return build_id.empty() ? BuildIdAt(notes, kUsual) : build_id;
}

}  // namespace strobe::internal
