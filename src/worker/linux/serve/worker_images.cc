#include "worker_images.h"

#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "../../../core/deleted_mark.h"
#include "../../../platform/linux/memory/process_memory.h"
#include "../../../process/mapped_file.h"
#include "../../../symbolize/elf/elf_format.h"
#include "../../../symbolize/images/byte_source.h"
#include "../../../symbolize/images/kept_files.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxVdsoBytes = 64 * 1024;
constexpr std::size_t kMaxImageSegments = 64;
// What a worker opens for one program beside images, and a little more.
constexpr rlim_t kOtherFiles = 16;

std::string ProgramPathOf(std::uint64_t process_id) {
  std::array<char, PATH_MAX> path{};
  const ssize_t bytes =
      readlink(absl::StrCat("/proc/", process_id, "/exe").c_str(), path.data(), path.size());
  return bytes > 0 ? WithoutDeletedMark(std::string(path.data(), static_cast<std::size_t>(bytes)))
                   : std::string();
}

// nullptr if it is no image.
std::shared_ptr<const OpenImage> Parsed(std::shared_ptr<OpenImage> image) {
  if (image->source != nullptr) image->file = ElfFile::Open(*image->source);
  if (!image->file || image->file->segments().size() > kMaxImageSegments) return nullptr;
  return image;
}

// The open files of all processes that are served, by their identities: a file that has changed is
// another one.
class OpenFiles {
 public:
  // `most_open` is for all files together.
  std::shared_ptr<const OpenImage> Share(const std::shared_ptr<FileSource>& source,
                                         std::size_t most_open) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<const OpenImage>& known = by_identity_[source->identity()];
    if (std::shared_ptr<const OpenImage> open = known.lock()) return open;
    const std::shared_ptr<OpenImage> image = std::make_shared<OpenImage>();
    image->source = source;
    std::shared_ptr<const OpenImage> open = Parsed(image);
    if (open != nullptr) {
      Module module{.path = {}, .build_id = open->file->build_id()};
      if (module.build_id.empty()) module.file_version = VersionOfFile(*source);
      image->file_version = module.file_version;
      if (CountOpen() < most_open) {
        KeepFile(module, source);
      } else {
        source->LetGo();
      }
    }
    known = open;
    if (by_identity_.size() > kMaxClosed)
      std::erase_if(by_identity_, [](const auto& item) { return item.second.expired(); });
    return open;
  }

 private:
  // Files that are closed stay listed up to this many.
  static constexpr std::size_t kMaxClosed = 2 * WorkerImages::kMaxImages;

  [[nodiscard]] std::size_t CountOpen() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        by_identity_, [](const auto& item) { return !item.second.expired(); }));
  }

  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const OpenImage>> by_identity_;
};

// Never freed: a thread that was left behind may still use it.
OpenFiles& AllOpenFiles() {
  static auto* const files = new OpenFiles;
  return *files;
}

}  // namespace

WorkerImages::WorkerImages(std::uint64_t process_id, const SymbolFiles& files)
    : process_id_(process_id), files_(files) {}

// A worker keeps half of what it may have, if that leaves enough for all else. A program that is
// served by a thread of its own has its memory as long as it has anything, and its limit is its
// own.
std::size_t WorkerImages::MostOpen() const {
  rlimit limit{};
  if (process_id_ == static_cast<std::uint64_t>(getpid()) || getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return 0;
  return static_cast<std::size_t>(std::max<rlim_t>(limit.rlim_cur / 2, kOtherFiles) - kOtherFiles);
}

std::shared_ptr<const OpenImage> WorkerImages::OpenFile(const Mapping& mapping) const {
  const std::shared_ptr<FileSource> source = OpenMapped(mapping, absl::StrCat(process_id_), files_);
  return source == nullptr ? nullptr : AllOpenFiles().Share(source, MostOpen());
}

std::shared_ptr<const OpenImage> WorkerImages::OpenVdso(const Mapping& mapping) const {
  auto image = std::make_shared<OpenImage>();
  image->memory.resize(std::min<std::size_t>(mapping.limit - mapping.start, kMaxVdsoBytes));
  auto* const bytes = reinterpret_cast<std::uint8_t*>(image->memory.data());
  image->memory.resize(ReadPages<kPagesPerRead>(static_cast<pid_t>(process_id_), mapping.start,
                                                {bytes, image->memory.size()}));
  image->source = std::make_shared<const SpanSource>(image->memory);
  return Parsed(std::move(image));
}

std::unique_ptr<WorkerImages::Image> WorkerImages::Open(const Mapping& mapping) const {
  auto image = std::make_unique<Image>();
  image->path = WithoutDeletedMark(mapping.path);
  image->inode = mapping.inode;
  if (mapping.path == "[vdso]") {
    image->open = OpenVdso(mapping);
  } else if (mapping.path.starts_with('/')) {
    image->open = OpenFile(mapping);
  }
  if (image->open == nullptr) return nullptr;
  const std::optional<std::uint64_t> address = image->file().AddressAt(mapping.file_offset);
  if (!address) return nullptr;
  image->load_bias = mapping.start - *address;
  return image;
}

// An image that was unloaded and loaded again elsewhere is another one. So is one whose file has
// been replaced.
WorkerImages::Image* WorkerImages::Find(const Mapping& mapping) {
  const std::string path = WithoutDeletedMark(mapping.path);
  for (const auto& image : images_) {
    if (image->path != path || image->inode != mapping.inode) continue;
    const std::optional<std::uint64_t> address = image->file().AddressAt(mapping.file_offset);
    if (address && image->load_bias == mapping.start - *address) return image.get();
  }
  if (images_.size() == kMaxImages) return nullptr;
  std::unique_ptr<Image> image = Open(mapping);
  if (image == nullptr) return nullptr;
  images_.push_back(std::move(image));
  return images_.back().get();
}

std::vector<Module> WorkerImages::Describe(const std::vector<Mapping>& mappings) {
  const std::string program = ProgramPathOf(process_id_);
  std::vector<Module> modules;
  for (const Mapping& mapping : mappings) {
    const Image* const image = Find(mapping);
    if (image == nullptr) continue;
    Module module{.start = mapping.start,
                  .limit = mapping.limit,
                  .file_offset = mapping.file_offset,
                  .load_bias = image->load_bias,
                  .path = image->path,
                  .build_id = image->file().build_id()};
    if (mapping.path == "[vdso]") module.kind = ModuleKind::kVdso;
    if (module.path == program) module.kind = ModuleKind::kProgram;
    const ElfFile::FrameInformation information = image->file().FindFrameInformation();
    if (information.index != 0) module.unwind_address = image->load_bias + information.index;
    if (information.eh_frame != 0) {
      module.eh_frame_address = image->load_bias + information.eh_frame;
      module.eh_frame_bytes = information.eh_frame_bytes;
    }
    module.file_version = image->open->file_version;
    modules.push_back(std::move(module));
  }
  std::stable_partition(modules.begin(), modules.end(),
                        [](const Module& module) { return module.kind == ModuleKind::kProgram; });
  return modules;
}

std::size_t WorkerImages::Read(Address address, std::span<std::uint8_t> bytes) const {
  // The last may have replaced others.
  for (auto at = images_.rbegin(); at != images_.rend(); ++at) {
    const Image& image = **at;
    const std::size_t count = ElfFile::ReadMapped(*image.open->source, image.file().segments(),
                                                  address - image.load_bias, bytes);
    if (count != 0) return count;
  }
  return 0;
}

}  // namespace strobe::internal
