#include "strobe/symbolize/pe_image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "strobe/core/memory_windows.h"

namespace strobe::internal {
namespace {

// Offsets and numbers are those of Microsoft's "PE Format".
constexpr std::uint16_t kDosMagic = 0x5A4D;
constexpr std::uint32_t kPeMagic = 0x4550;
constexpr std::uint16_t kX64 = 0x8664;
constexpr std::uint16_t kPlusMagic = 0x20B;
constexpr std::uint16_t kIsLibrary = 0x2000;  // IMAGE_FILE_DLL
constexpr std::uint32_t kSectionHasCode = 0x20;
constexpr std::size_t kFileHeaderBytes = 24;  // with the magic number before
constexpr std::size_t kDirectories = 112;     // in the optional header
constexpr std::size_t kExportDirectory = 0;
constexpr std::size_t kExceptionDirectory = 3;
constexpr std::size_t kDebugDirectory = 6;
constexpr std::size_t kSectionBytes = 40;
constexpr std::size_t kDebugEntryBytes = 28;
constexpr std::size_t kMaxDebugEntries = 32;
constexpr std::uint32_t kCodeView = 2;
constexpr std::uint32_t kRsds = 0x53445352;
constexpr std::size_t kCodeViewPath = 24;  // behind the GUID and the age

class PeReader {
 public:
  explicit PeReader(MemoryWindows& memory) : memory_(memory) {}

  template <class T>
  T At(std::uint64_t position) {
    std::array<std::uint8_t, sizeof(T)> bytes{};
    T value{};
    is_ok_ = is_ok_ && memory_(position, bytes) == bytes.size();
    if (is_ok_) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  // Whether all so far could be read.
  [[nodiscard]] bool ok() const { return is_ok_; }

 private:
  MemoryWindows& memory_;
  bool is_ok_ = true;
};

// Reads the GUID and age by which a debugger finds the image's debug information, and its path.
void ReadDebugDirectory(MemoryWindows& memory, PeImage::Layout layout, std::uint32_t directory,
                        std::uint32_t bytes, PeImage& image) {
  const auto place = [&](std::uint32_t position) {
    return layout == PeImage::Layout::kLoaded ? std::optional<std::uint64_t>(position)
                                              : image.FileOffset(position);
  };
  const std::optional<std::uint64_t> entries = place(directory);
  for (std::size_t i = 0;
       entries && i < std::min<std::size_t>(bytes / kDebugEntryBytes, kMaxDebugEntries); ++i) {
    PeReader reader(memory);
    const std::uint64_t entry = *entries + i * kDebugEntryBytes;
    if (reader.At<std::uint32_t>(entry + 12) != kCodeView) continue;
    const std::optional<std::uint64_t> data = place(reader.At<std::uint32_t>(entry + 20));
    if (!data || reader.At<std::uint32_t>(*data) != kRsds) continue;
    std::string id =
        absl::StrFormat("%08x%04x%04x", reader.At<std::uint32_t>(*data + 4),
                        reader.At<std::uint16_t>(*data + 8), reader.At<std::uint16_t>(*data + 10));
    for (const std::uint8_t byte : reader.At<std::array<std::uint8_t, 8>>(*data + 12))
      absl::StrAppendFormat(&id, "%02x", byte);
    absl::StrAppendFormat(&id, "%x", reader.At<std::uint32_t>(*data + 20));
    if (!reader.ok()) continue;
    image.build_id = std::move(id);
    std::array<std::uint8_t, PeImage::kMaxPathBytes> path;
    const std::size_t path_bytes = memory(*data + kCodeViewPath, path);
    image.debug_file.assign(
        path.begin(),
        std::find(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(path_bytes), 0));
    return;
  }
}

}  // namespace

std::optional<PeImage> PeImage::Open(const AnyMemoryReader& read, Layout layout) {
  MemoryWindows memory(read);
  PeReader reader(memory);
  if (reader.At<std::uint16_t>(0) != kDosMagic) return std::nullopt;
  const std::uint64_t header = reader.At<std::uint32_t>(0x3C);
  if (reader.At<std::uint32_t>(header) != kPeMagic || reader.At<std::uint16_t>(header + 4) != kX64)
    return std::nullopt;
  const std::uint64_t optional_header = header + kFileHeaderBytes;
  if (reader.At<std::uint16_t>(optional_header) != kPlusMagic) return std::nullopt;
  PeImage image;
  image.symbols_offset = reader.At<std::uint32_t>(header + 12);
  image.symbol_count = reader.At<std::uint32_t>(header + 16);
  image.is_library = (reader.At<std::uint16_t>(header + 22) & kIsLibrary) != 0;
  image.preferred_base = reader.At<std::uint64_t>(optional_header + 24);
  image.image_bytes = reader.At<std::uint32_t>(optional_header + 56);
  const auto directories = reader.At<std::uint32_t>(optional_header + 108);
  const auto directory = [&](std::size_t number, std::size_t field) {
    return number < directories
               ? reader.At<std::uint32_t>(optional_header + kDirectories + number * 8 + field)
               : 0;
  };
  image.pdata = directory(kExceptionDirectory, 0);
  image.pdata_bytes = directory(kExceptionDirectory, 4);
  image.exports = directory(kExportDirectory, 0);
  image.exports_bytes = directory(kExportDirectory, 4);
  const std::uint64_t sections = optional_header + reader.At<std::uint16_t>(header + 20);
  const std::size_t section_count =
      std::min<std::size_t>(reader.At<std::uint16_t>(header + 6), kMaxSections);
  for (std::size_t i = 0; i < section_count && reader.ok(); ++i) {
    const std::uint64_t section = sections + i * kSectionBytes;
    image.sections.push_back(
        {.name = reader.At<std::array<char, 8>>(section),
         .start = reader.At<std::uint32_t>(section + 12),
         .bytes = reader.At<std::uint32_t>(section + 8),
         .file_offset = reader.At<std::uint32_t>(section + 20),
         .file_bytes = reader.At<std::uint32_t>(section + 16),
         .is_code = (reader.At<std::uint32_t>(section + 36) & kSectionHasCode) != 0});
  }
  const auto time = reader.At<std::uint32_t>(header + 8);
  const std::uint32_t debug = directory(kDebugDirectory, 0);
  const std::uint32_t debug_bytes = directory(kDebugDirectory, 4);
  if (!reader.ok()) return std::nullopt;
  ReadDebugDirectory(memory, layout, debug, debug_bytes, image);
  if (image.build_id.empty()) image.build_id = absl::StrFormat("%08x%x", time, image.image_bytes);
  return image;
}

std::optional<std::uint64_t> PeImage::FileOffset(std::uint32_t position) const {
  for (const Section& section : sections) {
    if (position >= section.start && position - section.start < section.file_bytes) {
      return std::uint64_t{section.file_offset} + (position - section.start);
    }
  }
  return std::nullopt;
}

std::vector<Module> PeImage::ModulesAt(Address base, const std::string& path) const {
  std::vector<Module> modules;
  for (const Section& section : sections) {
    if (!section.is_code || section.start >= image_bytes) continue;
    Module module{
        .start = base + section.start,
        .limit = base + section.start + std::min(section.bytes, image_bytes - section.start),
        .file_offset = section.file_offset,
        .load_bias = base,
        .path = path,
        .build_id = build_id,
        .kind = is_library ? ModuleKind::kSharedLibrary : ModuleKind::kProgram,
        .format = ImageFormat::kPe};
    // An image without frame information has functions that need none.
    module.pdata_address = base + pdata;
    module.pdata_bytes = pdata == 0 ? 0 : pdata_bytes;
    modules.push_back(std::move(module));
  }
  return modules;
}

}  // namespace strobe::internal
