#include "strobe/symbolize/debug_frame.h"

#include "elf_images.h"

namespace strobe {

std::vector<std::uint8_t> ReadDebugFrame(const Module& module, const SymbolFiles& files) {
  std::vector<std::uint8_t> bytes;
  internal::VisitElfImages(module, files, SymbolSearch(), [&](internal::ElfImage&& image) {
    const internal::SectionBytes section = internal::OpenSection(image, ".debug_frame", files);
    if (section.size() > kMaxDebugFrameBytes || !section.Read(0, section.size(), bytes))
      bytes.clear();
    return bytes.empty();
  });
  return bytes;
}

}  // namespace strobe
