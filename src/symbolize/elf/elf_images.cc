#include "elf_images.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "../images/byte_source.h"
#include "../images/kept_files.h"
#include "elf_format.h"
#include "inflated_source.h"

namespace strobe::internal {
namespace {

// What an image's section .gnu_debuglink says of the file with its debug information: its name,
// padded with zeros to a multiple of four, and its checksum.
struct DebugLink {
  std::string name;
  std::uint32_t checksum = 0;
};

DebugLink ReadDebugLink(const ElfFile& file) {
  constexpr std::size_t kMaxLinkBytes = 4096;
  const std::vector<std::uint8_t> bytes = file.ReadSection(".gnu_debuglink", kMaxLinkBytes);
  DebugLink link;
  if (bytes.size() <= sizeof(link.checksum)) return link;
  const std::size_t name_bytes = bytes.size() - sizeof(link.checksum);
  const auto* name = reinterpret_cast<const char*>(bytes.data());
  link.name.assign(name, strnlen(name, name_bytes));
  std::memcpy(&link.checksum, bytes.data() + name_bytes, sizeof(link.checksum));
  return link;
}

bool HasChecksum(const ByteSource& source, std::uint32_t expected) {
  constexpr std::uint64_t kChunkBytes = 256 * 1024;
  if (source.size() > kMaxChecksumBytes) return false;
  uLong checksum = crc32(0, nullptr, 0);
  std::vector<Bytef> chunk;
  for (std::uint64_t at = 0; at < source.size(); at += chunk.size()) {
    if (!ReadArray(source, at, std::min(kChunkBytes, source.size() - at), chunk)) return false;
    checksum = crc32(checksum, chunk.data(), static_cast<uInt>(chunk.size()));
  }
  return checksum == expected;
}

// The content of a section that zstd has compressed; nullptr if it is none.
std::shared_ptr<const ByteSource> OpenZstd(const ByteSource& file,
                                           const ElfFile::SectionPlace& place,
                                           const SymbolFiles& files) {
  std::vector<std::uint8_t> bytes;
  if (place.bytes > kMaxWholeBytes || !ReadArray(file, place.offset, place.bytes, bytes))
    return nullptr;
  const std::optional<CompressedContent> content = FindCompressedContent(bytes);
  if (!content.has_value() || content->type != CompressionHeader::kZstd ||
      content->size > kMaxWholeBytes)
    return nullptr;
  const std::span compressed = std::as_bytes(std::span(bytes)).subspan(content->head_bytes);
  std::vector<std::byte> inflated =
      files.InflateZstd(compressed, static_cast<std::size_t>(content->size));
  return std::make_shared<const OwnedSource>(std::move(inflated));
}

}  // namespace

std::optional<ElfFile> OpenFor(const Module& module, const ByteSource& source) {
  std::optional<ElfFile> file = ElfFile::Open(source);
  if (!file.has_value() || file->build_id() != module.build_id) return std::nullopt;
  if (module.build_id.empty() && !file->Maps(module.file_offset, module.start - module.load_bias))
    return std::nullopt;
  return file;
}

void VisitElfImages(const Module& module, const SymbolFiles& files, const SymbolSearch& search,
                    const std::function<bool(ElfImage&& image)>& visit) {
  // Without an image, its debug information may still be there.
  std::vector<std::pair<std::string, DebugLink>> images = {{module.path, {}}};
  std::set<std::string> identities;  // a file may have several paths
  // False once the visitor has enough.
  const auto visit_image = [&](const std::string& path, std::shared_ptr<const FileSource> source) {
    if (source == nullptr || !identities.insert(source->identity()).second) return true;
    std::optional<ElfFile> file = OpenFor(module, *source);
    if (!file.has_value()) return true;
    if (DebugLink link = ReadDebugLink(*file); !link.name.empty())
      images.emplace_back(path, std::move(link));
    return visit({path, std::move(source), *std::move(file)});
  };
  if (!visit_image(module.path, KeptFileOf(module))) return;
  for (const std::string& path : ImagePaths(module, search)) {
    if (!visit_image(path, files.Open(path))) return;
  }
  for (const auto& [image_path, link] : images) {
    for (const std::string& path : DebugPaths(module, image_path, link.name, search)) {
      std::optional<ElfImage> image = OpenElfImage(path, files);
      const bool belongs = image.has_value() && image->file.build_id() == module.build_id &&
                           (!module.build_id.empty() || HasChecksum(*image->source, link.checksum));
      if (belongs && !visit(*std::move(image))) return;
    }
  }
  const std::string fetched = FetchedPath(module, search);
  if (fetched.empty()) return;
  std::optional<ElfImage> image = OpenElfImage(fetched, files);
  if (image.has_value() && image->file.build_id() == module.build_id) visit(*std::move(image));
}

std::optional<ElfImage> OpenElfImage(const std::string& path, const SymbolFiles& files) {
  std::shared_ptr<const FileSource> source = files.Open(path);
  if (source == nullptr) return std::nullopt;
  std::optional<ElfFile> file = ElfFile::Open(*source);
  if (!file.has_value()) return std::nullopt;
  return ElfImage{path, std::move(source), *std::move(file)};
}

SectionBytes OpenSection(const ElfImage& image, const std::string& name, const SymbolFiles& files) {
  const std::optional<ElfFile::SectionPlace> place = image.file.FindSection(name);
  if (!place.has_value()) return {};
  if (!place->is_compressed) return {image.source, place->offset, place->bytes};
  std::shared_ptr<const ByteSource> inflated =
      InflatedSource::Open(image.source, place->offset, place->bytes);
  if (inflated == nullptr) inflated = OpenZstd(*image.source, *place, files);
  if (inflated == nullptr) return {};
  const std::uint64_t bytes = inflated->size();
  return {std::move(inflated), 0, bytes};
}

}  // namespace strobe::internal
