#include "image_files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/deleted_mark.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe::internal {
namespace {

// Resolves a name in the current directory; returns the name if there is no such file.
std::string AbsoluteIfThere(const std::string& name) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(name, error).lexically_normal();
  return !error && std::filesystem::exists(path, error) ? path.string() : name;
}

}  // namespace

std::string ProgramPath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length > 0) return WithoutDeletedMark(std::string(path, static_cast<std::size_t>(length)));
  const auto* const started_as =
      reinterpret_cast<const char*>(getauxval(AT_EXECFN));  // NOLINT(performance-no-int-to-ptr)
  return AbsoluteIfThere(started_as != nullptr ? started_as : program_invocation_name);
}

std::string ImagePaths::Of(const std::string& name, Address address) {
  if (name.starts_with('/')) return name;
  std::string path = At(address);
  return path.empty() ? AbsoluteIfThere(name) : path;
}

std::string ImagePaths::At(Address address) {
  if (!std::exchange(is_read_, true)) Read();
  const auto file = std::ranges::upper_bound(files_, address, {}, &MappedFile::limit);
  return file != files_.end() && address >= file->start ? file->path : std::string();
}

void ImagePaths::Read() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             &std::fclose);
  char line[PATH_MAX + 128];
  while (maps != nullptr && std::fgets(line, sizeof(line), maps.get()) != nullptr) {
    unsigned long start = 0;
    unsigned long limit = 0;
    int path_at = 0;
    if (std::sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &limit, &path_at) < 2) continue;
    std::string path = path_at > 0 ? line + path_at : "";
    if (path.ends_with('\n')) path.pop_back();
    if (!path.starts_with('/')) continue;
    path = WithoutDeletedMark(std::move(path));
    // An image has several parts, one behind the other.
    if (!files_.empty() && files_.back().limit == start && files_.back().path == path) {
      files_.back().limit = limit;
    } else {
      files_.push_back({start, limit, std::move(path)});
    }
  }
}

std::uint64_t FileVersionOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return 0;
  std::uint64_t version = 1;
  for (const auto part :
       {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino),
        static_cast<std::uint64_t>(status.st_size),
        static_cast<std::uint64_t>(status.st_mtim.tv_sec),
        static_cast<std::uint64_t>(status.st_mtim.tv_nsec)}) {
    version = (version ^ part) * 0x9E3779B97F4A7C15;
    version ^= version >> 32;
  }
  return version;
}

EhFrameSection ReadEhFrameSection(const std::string& path) {
  constexpr std::size_t kMaxSections = 4096;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const auto read_at = [&file](std::uint64_t offset, void* data, std::size_t bytes) {
    return pread(file.get(), data, bytes, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(bytes);
  };
  EhFrameSection found;
  ElfW(Ehdr) header;
  ElfW(Shdr) names;
  constexpr std::string_view kName(".eh_frame", sizeof(".eh_frame"));  // with its end
  if (read_at(0, &header, sizeof(header)) && header.e_shentsize == sizeof(names) &&
      header.e_shnum <= kMaxSections &&
      read_at(header.e_shoff + header.e_shstrndx * sizeof(names), &names, sizeof(names))) {
    for (std::size_t i = 0; i < header.e_shnum && found.bytes == 0; ++i) {
      ElfW(Shdr) section;
      char name[kName.size()];
      if (!read_at(header.e_shoff + i * sizeof(section), &section, sizeof(section))) break;
      if ((section.sh_flags & SHF_ALLOC) == 0 ||
          !read_at(names.sh_offset + section.sh_name, name, sizeof(name)))
        continue;
      if (std::string_view(name, sizeof(name)) == kName)
        found = {.address = section.sh_addr, .bytes = section.sh_size};
    }
  }
  return found;
}

}  // namespace strobe::internal
