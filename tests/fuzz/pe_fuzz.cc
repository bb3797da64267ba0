// Bytes as a Windows image, in its file and in memory: what its headers say, and the names that the
// symbolizer reads of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_input.h"
#include "images/byte_source.h"
#include "names/demangle.h"
#include "pe/pe_symbols.h"
#include "strobe/core/thread_info.h"
#include "strobe/symbolize/pe_image.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

using internal::FunctionTable;
using internal::PeImage;

constexpr Address kBase = 0x7FF000000000;

std::optional<PeImage> Open(std::span<const std::uint8_t> bytes, PeImage::Layout layout) {
  return PeImage::Open(
      [&](std::uint64_t position, std::span<std::uint8_t> out) {
        if (position >= bytes.size()) return std::size_t{0};
        const std::size_t count =
            std::min(out.size(), bytes.size() - static_cast<std::size_t>(position));
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(position), count, out.begin());
        return count;
      },
      layout);
}

void CheckImage(const PeImage& image) {
  testing::Check(!image.build_id.empty() &&
                     image.build_id.find_first_not_of("0123456789abcdef") == std::string::npos,
                 "a build id that is no hexadecimal number");
  testing::Check(image.sections.size() <= PeImage::kMaxSections, "more sections than are read");
  for (const Module& module : image.ModulesAt(kBase, "x.dll")) {
    testing::Check(module.start <= module.limit && module.start >= kBase &&
                       module.limit - kBase <= image.image_bytes,
                   "code that is not in its image");
  }
}

void CheckNames(const FunctionTable& functions, const PeImage& image) {
  internal::Demangler demangler;
  const auto check = [&](std::uint64_t address) {
    const std::string_view name = functions.Find(address);
    testing::Check(!functions.empty() || name.empty(), "a name from an empty table");
    const std::string shown = demangler.Demangle(name);
    testing::Check(shown == ValidUtf8(shown), "a name that no profile can hold");
    testing::Check(name.empty() || std::any_of(image.sections.begin(), image.sections.end(),
                                               [&](const PeImage::Section& section) {
                                                 return section.is_code &&
                                                        address >= section.start &&
                                                        address - section.start < section.bytes;
                                               }),
                   "a name for what is no code");
  };
  constexpr std::size_t kCheckedSections = 4;
  for (std::size_t i = 0; i < std::min(image.sections.size(), kCheckedSections); ++i) {
    const PeImage::Section& section = image.sections[i];
    for (const std::uint32_t offset :
         {0x0u, 0x10u, 0x40u, 0x80u, 0xFFu, section.bytes - 1, section.bytes}) {
      check(std::uint64_t{section.start} + offset);
    }
  }
  check(0);
  check(~std::uint64_t{0});
}

void Run(std::span<const std::uint8_t> bytes) {
  const std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  if (const std::optional<PeImage> loaded = Open(copy, PeImage::Layout::kLoaded))
    CheckImage(*loaded);
  const std::optional<PeImage> image = Open(copy, PeImage::Layout::kFile);
  if (!image) return;
  CheckImage(*image);
  const internal::SpanSource source(std::as_bytes(std::span(copy)));
  const std::optional<internal::PeFile> file = internal::PeFile::Open(source, image->build_id);
  testing::Check(file.has_value(), "an image that is there at times");
  for (const char* name : {".text", ".debug_info", ".debug_line_str"}) {
    const std::optional<internal::PeFile::SectionPlace> place = file->FindSection(name);
    testing::Check(
        !place || (place->offset <= copy.size() && place->bytes <= copy.size() - place->offset),
        "a section beyond the file");
  }
  CheckNames(file->ReadFunctions(), *image);
  CheckNames(file->ReadExports(), *image);
  testing::Check(!internal::PeFile::Open(source, image->build_id + "0").has_value(),
                 "another image's file");
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run({data, size});
  return 0;
}
