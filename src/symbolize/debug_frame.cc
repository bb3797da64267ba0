#include "strobe/symbolize/debug_frame.h"

#include <memory>
#include <optional>
#include <string>

#include "elf_file.h"
#include "module_files.h"

namespace strobe {

std::vector<std::uint8_t> ReadDebugFrame(const Module& module, const SymbolFiles& files) {
  for (const std::string& path : internal::PathsOf(module, internal::kDebugDirectory)) {
    const std::unique_ptr<FileSource> source = files.Open(path);
    if (source == nullptr) continue;
    const std::optional<internal::ElfFile> file = internal::OpenFor(module, *source);
    if (!file.has_value()) continue;
    std::vector<std::uint8_t> bytes = file->ReadSection(".debug_frame", kMaxDebugFrameBytes);
    if (!bytes.empty()) return bytes;
  }
  return {};
}

}  // namespace strobe
