#include "strobe/symbolize/debug_frame.h"

#include "elf_images.h"

namespace strobe {

std::vector<std::uint8_t> ReadDebugFrame(const Module& module, const SymbolFiles& files) {
  std::vector<std::uint8_t> bytes;
  internal::VisitElfImages(module, files, SymbolSearch(), [&](internal::ElfImage&& image) {
    bytes = image.file.ReadSection(".debug_frame", kMaxDebugFrameBytes);
    return bytes.empty();
  });
  return bytes;
}

}  // namespace strobe
