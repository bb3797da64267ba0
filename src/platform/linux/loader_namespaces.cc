#include "loader_namespaces.h"

#include <elf.h>
#include <limits.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/platform/linux/linux_platform.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxNamespaces = 64;  // glibc has 16
constexpr std::size_t kMaxImages = 4096;    // of all namespaces together
constexpr std::size_t kMaxDynamicEntries = 256;

// glibc's r_debug_extended, which older headers do not have.
struct NamespaceList {
  r_debug first;
  Address next = 0;  // another one, of the next namespace
};
constexpr int kHasNamespaces = 2;  // its version then

template <class T>
bool ReadAt(Address address, T& value) {
  std::uint8_t bytes[sizeof(T)];
  if (address == 0 || LinuxPlatform::ReadMemory(address, bytes) != sizeof(T)) return false;
  std::memcpy(&value, bytes, sizeof(T));
  return true;
}

std::string ReadName(Address address) {
  std::uint8_t bytes[PATH_MAX];
  const std::size_t count = LinuxPlatform::ReadMemory(address, bytes);
  std::string name(bytes, bytes + count);
  const std::size_t end = name.find('\0');
  return end == std::string::npos ? std::string() : name.substr(0, end);
}

Address DebuggersList(Address dynamic) {
  for (std::size_t i = 0; i < kMaxDynamicEntries; ++i) {
    ElfW(Dyn) entry;
    if (!ReadAt(dynamic + i * sizeof(entry), entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_DEBUG) return entry.d_un.d_ptr;
  }
  return 0;
}

// False if there are no program headers behind the image's first bytes.
bool FindHeaders(LoadedImage& image) {
  ElfW(Ehdr) header;
  if (!ReadAt(image.load_bias, header) ||
      !std::equal(header.e_ident, header.e_ident + SELFMAG, ELFMAG))
    return false;
  image.headers = image.load_bias + header.e_phoff;
  image.header_count = header.e_phnum;
  return true;
}

Address AddressOf(const void* pointer) { return reinterpret_cast<Address>(pointer); }

}  // namespace

std::vector<LoadedImage> ImagesOfNamespaces(Address dynamic) {
  std::vector<LoadedImage> images;
  Address at = DebuggersList(dynamic);
  for (std::size_t i = 0; at != 0 && i < kMaxNamespaces; ++i) {
    NamespaceList list{};
    if (!ReadAt(at, list.first) || list.first.r_version < kHasNamespaces || !ReadAt(at, list))
      break;
    link_map entry{};
    for (Address map = AddressOf(list.first.r_map);
         images.size() < kMaxImages && ReadAt(map, entry); map = AddressOf(entry.l_next)) {
      LoadedImage image{.load_bias = entry.l_addr, .name = ReadName(AddressOf(entry.l_name))};
      if (FindHeaders(image)) images.push_back(std::move(image));
    }
    at = list.next;
  }
  return images;
}

}  // namespace strobe::internal
