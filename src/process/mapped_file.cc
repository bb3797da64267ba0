#include "mapped_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>

#include "../symbolize/elf/elf_file.h"
#include "absl/strings/str_cat.h"
#include "strobe/base/page.h"

namespace strobe::internal {
namespace {

using Segment = ElfFile::Segment;

// Compared at each end of memory that may have a file's code.
constexpr std::size_t kComparedBytes = 256;

// Bytes of a process's memory, without a call that waits for it; fewer if they may not be read. The
// file has those of code that may be executed but not read as well.
std::size_t ReadProcess(const std::string& process, Address address,
                        std::span<std::uint8_t> bytes) {
  std::ifstream memory(absl::StrCat("/proc/", process, "/mem"), std::ios::binary);
  memory.seekg(static_cast<std::streamoff>(address));
  memory.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return static_cast<std::size_t>(std::max<std::streamsize>(memory.gcount(), 0));
}

// True if the process has the file's bytes at `address`. Behind the end of the segment in the file
// there is nothing to compare.
bool HasBytesOf(const ByteSource& source, const std::vector<Segment>& segments, Address load_bias,
                Address address, const std::string& process) {
  std::array<std::uint8_t, kComparedBytes> in_file{};
  std::array<std::uint8_t, kComparedBytes> in_memory{};
  const std::size_t count = ElfFile::ReadMapped(source, segments, address - load_bias, in_file);
  return ReadProcess(process, address, {in_memory.data(), count}) == count &&
         std::equal(in_file.begin(), in_file.begin() + static_cast<std::ptrdiff_t>(count),
                    in_memory.begin());
}

// Where `moved` lies in the file, if the image is loaded with that bias.
std::optional<std::uint64_t> OffsetOf(const Mapping& moved, const std::vector<Segment>& segments,
                                      Address load_bias) {
  for (const Segment& segment : segments) {
    const Address begin = load_bias + segment.address;
    if (segment.is_code() && moved.start >= PageOf(begin) &&
        moved.limit <= RoundUpToPages(begin + segment.memory_size))
      return segment.offset + (moved.start - begin);
  }
  return std::nullopt;
}

}  // namespace

bool IsFile(std::string_view path) {
  return path.starts_with('/') && !path.starts_with("//") && !path.starts_with("/dev/zero") &&
         !path.starts_with("/anon_hugepage");
}

std::shared_ptr<FileSource> OpenMapped(const Mapping& mapping, const std::string& process,
                                       const SymbolFiles& files) {
  return OpenFirst(mapping, process, {&mapping.path, 1},
                   [&](const std::string& path) { return files.Open(path); });
}

std::optional<Mapping> FileOfMoved(const Mapping& moved, std::span<const Mapping> beside,
                                   const std::string& process, const SymbolFiles& files) {
  for (const Mapping& neighbour : beside) {
    const std::shared_ptr<FileSource> source = OpenMapped(neighbour, process, files);
    if (source == nullptr) continue;
    const std::optional<ElfFile> file = ElfFile::Open(*source);
    if (!file.has_value()) continue;
    const std::vector<Segment>& segments = file->segments();
    for (const Segment& segment : segments) {
      if (!segment.Holds(neighbour.file_offset)) continue;
      const Address load_bias =
          neighbour.start - (segment.address - segment.offset + neighbour.file_offset);
      const std::optional<std::uint64_t> offset = OffsetOf(moved, segments, load_bias);
      if (!offset.has_value()) continue;
      const Address last = std::max(moved.start, moved.limit - kComparedBytes);
      if (!HasBytesOf(*source, segments, load_bias, moved.start, process) ||
          !HasBytesOf(*source, segments, load_bias, last, process))
        continue;
      Mapping found = moved;
      found.file_offset = *offset;
      found.path = neighbour.path;
      found.inode = neighbour.inode;
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace strobe::internal
