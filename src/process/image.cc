#include "image.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "../symbolize/images/byte_source.h"
#include "../symbolize/images/kept_files.h"
#include "mapped_file.h"
#include "strobe/base/page.h"
#include "strobe/symbolize/debug_frame.h"

namespace strobe::internal {
namespace {

// An image has one segment of code, seldom two.
constexpr std::size_t kMaxCodeSegments = 16;
// Identities of files that are remembered for each image that there may be.
constexpr std::size_t kKeysPerImage = 8;

bool IsCode(const ElfFile::Segment& segment, std::uint64_t file_bytes) {
  return segment.is_code() && segment.file_size > 0 && segment.file_size <= file_bytes &&
         segment.address <= ~Address{0} / 2;
}

constexpr std::string_view kBuildId = "build id ";
std::string BuildIdKey(const std::string& build_id) {
  return std::string(kBuildId).append(build_id);
}

}  // namespace

Image::Image(std::uint64_t number, std::string path, ModuleKind kind,
             std::shared_ptr<const ByteSource> source, const ElfFile& file,
             std::uint64_t file_version, const SymbolFiles& files)
    : number_(number),
      path_(std::move(path)),
      build_id_(file.build_id()),
      file_version_(file_version),
      kind_(kind),
      source_(std::move(source)),
      segments_(file.segments()),
      read_([this](Address address, std::span<std::uint8_t> bytes) {
        return ReadMemory(address, bytes);
      }),
      read_debug_frame_([&files](const Module& module) { return ReadDebugFrame(module, files); }),
      sources_{file.architecture(), read_, read_debug_frame_} {
  for (const Segment& segment : segments_) {
    if (!IsCode(segment, source_->size()) || modules_.size() == kMaxCodeSegments) continue;
    modules_.push_back(Describe(file, segment));
  }
  Drop();
}

Module Image::Describe(const ElfFile& file, const Segment& segment) const {
  Module module{.path = path_, .build_id = build_id_, .kind = kind_};
  module.file_version = file_version_;
  module.start = PageOf(segment.address);
  module.limit = RoundUpToPages(segment.address + segment.file_size);
  module.file_offset = segment.offset - (segment.address - module.start);
  const ElfFile::FrameInformation information = file.FindFrameInformation();
  module.unwind_address = information.index;
  module.eh_frame_address = information.eh_frame;
  module.eh_frame_bytes = information.eh_frame_bytes;
  return module;
}

std::size_t Image::ReadMemory(Address address, std::span<std::uint8_t> bytes) const {
  return ElfFile::ReadMapped(*source_, segments_, address, bytes);
}

std::optional<Address> Image::AddressAt(std::uint64_t file_offset) const {
  for (const Segment& segment : segments_) {
    if (IsCode(segment, source_->size()) && segment.Holds(file_offset))
      return segment.address - segment.offset + file_offset;
  }
  return std::nullopt;
}

void Image::AddEntries(const Module& module, Address floor,
                       std::vector<UnwindModules::Entry>& entries) const {
  for (const auto& tables : tables_) {
    for (std::size_t chunk = 0; chunk < tables->chunks(); ++chunk) {
      UnwindModules::Entry entry = tables->Entry(chunk);
      entry.start += module.load_bias;
      entry.limit += module.load_bias;
      if (entry.limit <= module.start || entry.start >= module.limit || entry.start < floor)
        continue;
      entry.limit = std::min(entry.limit, module.limit);
      // Of two modules that were one, both may have code of a chunk.
      if (!entries.empty() && entries.back().start == entry.start) {
        entries.back().limit = entry.limit;
      } else {
        entries.push_back(std::move(entry));
      }
    }
  }
}

void Image::Build(Address address) {
  for (const auto& tables : tables_) {
    const Module& module = tables->module();
    if (address < module.start || address >= module.limit) continue;
    tables->Build(static_cast<std::size_t>((address - module.start) / UnwindModules::kChunkBytes));
    CountMemory();
    return;
  }
}

void Image::Drop() {
  tables_.clear();
  for (const Module& module : modules_) {
    if (ModuleTables::CanBuild(module, sources_))
      tables_.push_back(std::make_unique<ModuleTables>(module, sources_));
  }
  memory_bytes_ = 0;
}

void Image::CountMemory() {
  memory_bytes_ = 0;
  for (const auto& tables : tables_) {
    memory_bytes_ += tables->memory_bytes();
    for (std::size_t chunk = 0; chunk < tables->chunks(); ++chunk) {
      const UnwindModules::Entry entry = tables->Entry(chunk);
      if (entry.table != nullptr) memory_bytes_ += entry.table->memory_bytes();
    }
  }
}

ImageTable::ImageTable(const SymbolFiles& files, SymbolSearch search, std::size_t max_images)
    : files_(files), search_(std::move(search)), max_images_(max_images) {}

std::size_t ImageTable::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto& image : images_) bytes += image->memory_bytes();
  return bytes;
}

std::shared_ptr<Image> ImageTable::Find(const Mapping& mapping, const std::string& process) {
  if (mapping.path == "[vdso]") return FindVdso(mapping);
  if (!IsFile(mapping.path)) return nullptr;
  if (!mapping.build_id.empty()) {
    if (std::shared_ptr<Image> image = Known(BuildIdKey(mapping.build_id))) return image;
  }
  Module wanted;
  wanted.path = mapping.path;
  wanted.build_id = mapping.build_id;
  return OpenFirst(mapping, process, ImagePaths(wanted, search_),
                   [&](const std::string& path) { return Open(path, mapping); });
}

std::shared_ptr<Image> ImageTable::Known(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<Image> ImageTable::Open(const std::string& path, const Mapping& mapping) {
  const auto is_wanted = [&](const std::string& build_id) {
    return mapping.build_id.empty() || build_id == mapping.build_id;
  };
  std::shared_ptr<const FileSource> source = files_.Open(path);
  if (source == nullptr) return nullptr;
  const std::string key = source->identity();
  if (std::shared_ptr<Image> image = Known(key))
    return is_wanted(image->build_id()) ? image : nullptr;
  const std::optional<ElfFile> file = ElfFile::Open(*source);
  if (!file.has_value() || !is_wanted(file->build_id())) return nullptr;
  Module module{.path = path, .build_id = file->build_id()};
  if (module.build_id.empty()) module.file_version = VersionOfFile(*source);
  std::shared_ptr<Image> image =
      Add(path, ModuleKind::kSharedLibrary, source, *file, module.file_version, key);
  if (image != nullptr) KeepFile(module, source);
  return image;
}

// All processes have the kernel's own, so this process has it, too.
std::shared_ptr<Image> ImageTable::FindVdso(const Mapping& mapping) {
  const std::string key = "[vdso]";
  std::shared_ptr<Image> image = Known(key);
  if (image == nullptr) {
    const auto own = ReadMaps("self");
    if (!own.ok()) return nullptr;
    const auto vdso = std::ranges::find(*own, key, &Mapping::path);
    if (vdso == own->end()) return nullptr;
    auto source =
        std::make_shared<const SpanSource>(files_.OwnVdso(vdso->start, vdso->start, vdso->limit));
    const std::optional<ElfFile> file = ElfFile::Open(*source);
    if (!file.has_value()) return nullptr;
    image = Add(key, ModuleKind::kVdso, std::move(source), *file, 0, key);
  }
  const bool is_wanted =
      image != nullptr && (mapping.build_id.empty() || mapping.build_id == image->build_id());
  return is_wanted ? image : nullptr;
}

std::shared_ptr<Image> ImageTable::Add(const std::string& path, ModuleKind kind,
                                       std::shared_ptr<const ByteSource> source,
                                       const ElfFile& file, std::uint64_t file_version,
                                       const std::string& key) {
  if (by_key_.size() >= kKeysPerImage * max_images_)
    std::erase_if(by_key_, [](const auto& entry) { return !entry.first.starts_with(kBuildId); });
  // The same file in another place.
  std::shared_ptr<Image> image;
  if (!file.build_id().empty()) image = Known(BuildIdKey(file.build_id()));
  if (image == nullptr) {
    if (!MakeRoom()) return nullptr;
    image = std::make_shared<Image>(++last_number_, path, kind, std::move(source), file,
                                    file_version, files_);
    images_.push_back(image);
  }
  by_key_[key] = image;
  if (!image->build_id().empty()) by_key_[BuildIdKey(image->build_id())] = image;
  return image;
}

// False if processes map all images that there may be.
bool ImageTable::MakeRoom() {
  if (images_.size() < max_images_) return true;
  const auto is_older = [](const std::shared_ptr<Image>& a, const std::shared_ptr<Image>& b) {
    const bool a_is_used = a.use_count() > 1;
    const bool b_is_used = b.use_count() > 1;
    return a_is_used != b_is_used ? b_is_used : a->last_use < b->last_use;
  };
  const auto oldest = std::ranges::min_element(images_, is_older);
  if (oldest == images_.end() || oldest->use_count() > 1) return false;
  images_.erase(oldest);
  std::erase_if(by_key_, [](const auto& entry) { return entry.second.expired(); });
  return true;
}

std::vector<const Image*> ImageTable::Trim(std::size_t max_bytes, std::uint64_t now) {
  std::vector<const Image*> dropped;
  for (std::size_t bytes = memory_bytes(); bytes > max_bytes;) {
    Image* oldest = nullptr;
    for (const auto& image : images_) {
      const bool is_older = oldest == nullptr || image->last_use < oldest->last_use;
      if (image->memory_bytes() > 0 && image->last_use < now && is_older) oldest = image.get();
    }
    if (oldest == nullptr) break;
    bytes -= oldest->memory_bytes();
    oldest->Drop();
    dropped.push_back(oldest);
  }
  return dropped;
}

}  // namespace strobe::internal
