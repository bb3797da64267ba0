#include "strobe/unwind/cfi_modules.h"

#include <algorithm>
#include <vector>

namespace strobe {
namespace {

// The bytes from `address` on, until the entries of an .eh_frame there end. Where the section ends is not known in memory, so it is read
// in pieces; the last may run into memory that is not there.
std::vector<std::uint8_t> ReadEhFrame(const CfiModules::ReadMemory& read, Address address) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 17;
  constexpr std::size_t kPageBytes = 4096;
  std::vector<std::uint8_t> bytes;
  std::size_t measured = 0;
  while (bytes.size() < CfiModules::kMaxEhFrameBytes) {
    const std::size_t had = bytes.size();
    bytes.resize(had + kPieceBytes);
    std::size_t got = read(address + had, std::span(bytes).subspan(had));
    if (got == 0) {
      // What lies before the first page that is not there.
      const std::size_t to_page = kPageBytes - static_cast<std::size_t>((address + had) % kPageBytes);
      got = read(address + had, std::span(bytes).subspan(had, to_page));
    }
    bytes.resize(had + got);
    const EhFrameExtent extent = MeasureEhFrame(std::span(bytes).subspan(measured));
    measured += extent.bytes;
    if (extent.is_terminated || got == 0) break;
  }
  bytes.resize(measured);
  return bytes;
}

}  // namespace

CfiModules::Known CfiModules::Compile(const Module& module) const {
  Known known{.module = module, .table = nullptr, .statistics = {}};
  constexpr std::size_t kHeaderBytes = 16;
  std::uint8_t header[kHeaderBytes] = {};
  const std::size_t got = module.unwind_address == 0 ? 0 : read_(module.unwind_address, header);
  const Address eh_frame = EhFrameAddress(std::span(header, got), module.unwind_address);
  const std::vector<std::uint8_t> bytes = eh_frame == 0 ? std::vector<std::uint8_t>() : ReadEhFrame(read_, eh_frame);
  CompiledCfi compiled = CompileCfi({.architecture = architecture_,
                                     .eh_frame = bytes,
                                     .eh_frame_address = eh_frame,
                                     .text_start = module.start,
                                     .text_limit = module.limit});
  known.statistics = compiled.statistics;
  if (!compiled.rows.empty()) {
    const auto text_bytes = static_cast<std::uint32_t>(module.limit - module.start);
    known.table = std::make_shared<UnwindTable>(text_bytes, compiled.rows, std::move(compiled.specials), std::move(compiled.saved_rows));
  }
  return known;
}

std::shared_ptr<const UnwindModules> CfiModules::Update(const ModuleMap& map) {
  std::map<Address, Known> now;
  std::vector<UnwindModules::Entry> entries;
  statistics_ = {};
  for (const Module& module : map.modules()) {
    const auto before = known_.find(module.start);
    const bool is_same = before != known_.end() && before->second.module == module;
    const Known& known = now.emplace(module.start, is_same ? std::move(before->second) : Compile(module)).first->second;
    statistics_.fdes += known.statistics.fdes;
    statistics_.rows += known.statistics.rows;
    statistics_.unknown_rows += known.statistics.unknown_rows;
    statistics_.broken_entries += known.statistics.broken_entries;
    if (known.table != nullptr) entries.push_back({module.start, module.limit, known.table});
  }
  known_ = std::move(now);
  return std::make_shared<const UnwindModules>(std::move(entries));
}

}  // namespace strobe
