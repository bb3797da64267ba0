#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "strobe/base/page.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/symbolize/symbol_files.h"
#include "system_xz.h"
#include "system_zstd.h"

namespace strobe {
namespace {

class LinuxFile final : public FileSource {
 public:
  LinuxFile(internal::Descriptor file, std::uint64_t size, std::string identity, std::string path)
      : file_(std::move(file)),
        size_(size),
        identity_(std::move(identity)),
        path_(std::move(path)) {}
  LinuxFile(const LinuxFile&) = delete;
  LinuxFile& operator=(const LinuxFile&) = delete;

  [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override;
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const std::string& identity() const override { return identity_; }
  void LetGo() override { file_.Close(); }

 private:
  internal::Descriptor file_;
  std::uint64_t size_;
  std::string identity_;
  std::string path_;
};

class LinuxFiles final : public SymbolFiles {
 public:
  [[nodiscard]] std::unique_ptr<FileSource> Open(const std::string& path) const override;
  [[nodiscard]] std::span<const std::byte> OwnVdso(std::uint64_t load_bias, std::uint64_t start,
                                                   std::uint64_t limit) const override;
  [[nodiscard]] std::vector<std::byte> InflateXz(std::span<const std::byte> compressed,
                                                 std::size_t max_bytes) const override {
    return internal::InflateXz(compressed, max_bytes);
  }
  [[nodiscard]] std::vector<std::byte> InflateZstd(std::span<const std::byte> compressed,
                                                   std::size_t max_bytes) const override {
    return internal::InflateZstd(compressed, max_bytes);
  }
};

// Non-blocking, because the path may be a pipe.
internal::Descriptor OpenToRead(const std::string& path) {
  return internal::Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

std::string IdentityOf(const struct stat& status) {
  return absl::StrCat(status.st_dev, ":", status.st_ino, ":", status.st_size, ":",
                      status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec, ":",
                      status.st_ctim.tv_sec, ".", status.st_ctim.tv_nsec);
}

std::unique_ptr<FileSource> LinuxFiles::Open(const std::string& path) const {
  internal::Descriptor file = OpenToRead(path);
  struct stat status;
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < 0)
    return nullptr;
  return std::make_unique<LinuxFile>(std::move(file), static_cast<std::uint64_t>(status.st_size),
                                     IdentityOf(status), path);
}

bool LinuxFile::ReadAt(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset) return false;
  int number = file_.get();
  internal::Descriptor opened;
  if (number < 0) {
    opened = OpenToRead(path_);
    number = opened.get();
    struct stat status;
    if (fstat(number, &status) != 0 || IdentityOf(status) != identity_) return false;
  }
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count =
        pread(number, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

constexpr std::uint64_t kMaxVdsoBytes = 64 * 1024;

// The readable bytes of a vdso with this header and a segment of `segment_bytes`. The kernel maps
// whole pages of the image's file, in which the section headers follow the segment. On Linux 5.10
// they lie in the next page.
std::size_t VdsoBytes(const Elf64_Ehdr& header, std::uint64_t segment_bytes) {
  const std::uint64_t bytes = internal::RoundUpToPages(segment_bytes);
  const std::uint64_t sections_end =
      header.e_shoff + std::uint64_t{header.e_shentsize} * header.e_shnum;
  if (sections_end <= bytes || sections_end > kMaxVdsoBytes) return bytes;
  const std::uint64_t whole = internal::RoundUpToPages(sections_end);
  // Not every system that has a vdso maps the whole file.
  std::array<unsigned char, kMaxVdsoBytes / internal::kPageBytes> pages;
  // NOLINTNEXTLINE(performance-no-int-to-ptr,cppcoreguidelines-pro-type-const-cast)
  void* const image = const_cast<Elf64_Ehdr*>(&header);
  return mincore(image, whole, pages.data()) == 0 ? whole : bytes;
}

std::span<const std::byte> LinuxFiles::OwnVdso(std::uint64_t load_bias, std::uint64_t start,
                                               std::uint64_t limit) const {
  const std::uint64_t base = getauxval(AT_SYSINFO_EHDR);
  if (base == 0 || load_bias != base || start != base || limit <= start) return {};
  // The bounds may come from a profile of another process, so they are not trusted. The size is
  // that of the image's own loaded segment.
  const auto* header =
      reinterpret_cast<const Elf64_Ehdr*>(base);  // NOLINT(performance-no-int-to-ptr)
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* segments = reinterpret_cast<const Elf64_Phdr*>(base + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type != PT_LOAD || segments[i].p_offset != 0 ||
        segments[i].p_filesz > kMaxVdsoBytes)
      continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return {reinterpret_cast<const std::byte*>(base), VdsoBytes(*header, segments[i].p_filesz)};
  }
  return {};
}

constexpr LinuxFiles kSymbolFiles;

}  // namespace

const SymbolFiles& LinuxPlatform::Files() { return kSymbolFiles; }

}  // namespace strobe
