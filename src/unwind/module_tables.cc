#include "module_tables.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "cfi_rows.h"
#include "debug_frame.h"
#include "decoded/decoded_code.h"
#include "decoded/kept_rows.h"
#include "strobe/core/memory_windows.h"
#include "strobe/unwind/known_code.h"
#include "strobe/unwind/pdata_compiler.h"

namespace strobe::internal {
namespace {

// How much of the code beside a chunk is decoded with it.
constexpr Address kBesideBytes = 16384;

// What `make` returns at the first call for `place`; never destroyed. Not a static of a function: a
// fork during the function's first call would leave the static locked in the child.
template <class Shared, class Make>
const Shared& MadeOnce(std::atomic<const Shared*>& place, Make make) {
  if (const Shared* known = place.load(std::memory_order_acquire)) return *known;
  auto own = std::make_unique<const Shared>(make());
  const Shared* known = nullptr;
  return place.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel) ? *own.release()
                                                                                    : *known;
}

// The stretches of code without frame information, but for what stands between two functions, of
// which the second is aligned.
std::vector<UnknownStretch> Gaps(const CompiledCfi& compiled, std::uint32_t bytes) {
  constexpr std::uint32_t kAlignment = 16;
  std::vector<UnknownStretch> gaps = UnknownStretches(compiled, bytes, 1);
  std::erase_if(gaps, [](const UnknownStretch& stretch) {
    return stretch.end - stretch.begin < kAlignment && stretch.end % kAlignment == 0;
  });
  return gaps;
}

// Only an ELF file has one.
bool MayHaveDebugFrame(const Module& module, const CfiSources& sources) {
  return sources.read_debug_frame != nullptr && module.has_file() &&
         module.format == ImageFormat::kElf;
}

}  // namespace

const std::shared_ptr<const UnwindTable>& EmptyTable() {
  static constinit std::atomic<const std::shared_ptr<const UnwindTable>*> place{nullptr};
  return MadeOnce(place, [] { return std::make_shared<const UnwindTable>(); });
}

const std::shared_ptr<RuleCache>& EmptyCache() {
  static constinit std::atomic<const std::shared_ptr<RuleCache>*> place{nullptr};
  return MadeOnce(place, [] { return std::make_shared<RuleCache>(RuleCache::StaysEmpty()); });
}

bool ModuleTables::CanBuild(const Module& module, const CfiSources& sources) {
  const bool has_nothing = module.unwind_address == 0 && module.eh_frame_address == 0 &&
                           module.pdata_address == 0 && module.stack_end == 0 &&
                           module.kind != ModuleKind::kVdso && !MayHaveDebugFrame(module, sources);
  return !has_nothing && module.limit - module.start <= std::numeric_limits<std::uint32_t>::max();
}

bool ModuleTables::Build(std::size_t chunk) {
  if (tables_[chunk] != nullptr) return false;
  const bool is_shared = sources_.share_table != nullptr && *sources_.share_table != nullptr;
  tables_[chunk] = is_shared
                       ? (*sources_.share_table)(module_, chunk, [&] { return Compile(chunk); })
                       : Compile(chunk).table;
  if (--pending_ == 0) {
    in_memory_ = NewIndex();
    in_file_ = NewIndex();
  }
  return true;
}

CfiModules::BuiltTable ModuleTables::Compile(std::size_t chunk) {
  const auto [first, limit, unbuilt] = Entry(chunk);
  CompiledCfi compiled =
      module_.pdata_address != 0 ? CompilePdata(first, limit) : CompileEhFrame(first, limit);
  const Address stack_end = module_.stack_end;
  if (stack_end > first && stack_end <= limit)
    AddStackEnd(static_cast<std::uint32_t>(stack_end - first), compiled);
  statistics_ += compiled.statistics;
  return {.table = compiled.rows.empty() ? EmptyTable()
                                         : std::make_shared<const UnwindTable>(
                                               static_cast<std::uint32_t>(limit - first),
                                               compiled.rows, std::move(compiled.specials)),
          .is_whole = !is_suspect_};
}

CompiledCfi ModuleTables::CompileEhFrame(Address first, Address limit) {
  if (!has_index_) ReadIndex();
  has_index_ = true;
  CompiledCfi compiled = CompileIndexed(first, limit);
  // The linker's index may lack functions: lld keeps one of those that begin at an address, and
  // that may be one without a length.
  const auto bytes = static_cast<std::uint32_t>(limit - first);
  if (!has_all_ && !Gaps(compiled, bytes).empty() && ReadAllOfEhFrame())
    compiled = CompileIndexed(first, limit);
  if (sources_.architecture == Architecture::kAarch64 && module_.kind == ModuleKind::kVdso) {
    std::vector<std::uint8_t> text(static_cast<std::size_t>(limit - first));
    text.resize(read_(first, text));
    AddAarch64SignalTrampolines(text, compiled);
  }
  if (sources_.architecture == Architecture::kX86_64) {
    AddUndescribed(first, limit, compiled);
    MemoryWindows memory(sources_.read);
    KeepRegistersAtCalls(first, std::ref(memory), compiled);
  }
  return compiled;
}

CompiledCfi ModuleTables::CompileIndexed(Address first, Address limit) {
  CfiRows rows(sources_.architecture, module_.start, module_.limit, first, limit);
  in_memory_.AddRows(first, limit, rows);
  if (!in_file_.empty()) in_file_.AddRows(first, limit, rows);
  is_suspect_ |= in_memory_.has_failed();
  return rows.Take();
}

// Rules for what no frame information describes.
void ModuleTables::AddUndescribed(Address first, Address limit, CompiledCfi& compiled) const {
  const auto bytes = static_cast<std::uint32_t>(limit - first);
  MemoryWindows memory(read_);
  std::vector<std::uint8_t> text;
  // Where not even the first can be read, the module was just being unloaded. The last one may lie
  // behind the end of a file.
  bool has_read = false;
  const auto read = [&](Address begin, Address end) {
    text.resize(has_read || !memory.has_failed() ? static_cast<std::size_t>(end - begin) : 0);
    text.resize(memory(begin, text));
    has_read |= !text.empty();
  };
  const std::vector<UnknownStretch> stretches = Gaps(compiled, bytes);
  for (const UnknownStretch& stretch : stretches) {
    read(first + stretch.begin, first + stretch.end);
    AddLinkageStubs(stretch.begin, text, compiled);
  }
  for (const UnknownStretch& rest : Gaps(compiled, bytes)) {
    // The functions that go on in the chunks beside are followed there, too.
    const Address begin = first + rest.begin;
    const Address end = first + rest.end;
    const Address from =
        rest.begin != 0 ? begin : begin - std::min<Address>(kBesideBytes, begin - module_.start);
    read(from, end < limit ? end : std::min(module_.limit, end + kBesideBytes));
    AddDecodedCode({.begin = rest.begin,
                    .end = rest.end,
                    .before = static_cast<std::uint32_t>(begin - from),
                    .text = text,
                    .begins_function = rest.begin != 0 || begin == module_.start},
                   compiled);
  }
  for (const UnknownStretch& stretch : stretches) {
    read(first + stretch.begin, first + stretch.end);
    AddKnownStackEnds(stretch.begin, text, compiled);
  }
}

CompiledCfi ModuleTables::CompilePdata(Address first, Address limit) {
  std::vector<std::uint8_t> text(static_cast<std::size_t>(limit - first));
  text.resize(read_(first, text));
  MemoryWindows memory(read_);
  const auto read = [&](Address position, std::span<std::uint8_t> bytes) {
    const Address address = module_.load_bias + position;
    if (address < first || address - first > text.size() ||
        bytes.size() > text.size() - (address - first))
      return memory(address, bytes);
    std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(address - first), bytes.size(),
                bytes.begin());
    return bytes.size();
  };
  CompiledCfi compiled = strobe::CompilePdata(
      {.read = read,
       .pdata = static_cast<std::uint32_t>(module_.pdata_address - module_.load_bias),
       .pdata_bytes = module_.pdata_bytes,
       .text = static_cast<std::uint32_t>(first - module_.load_bias),
       .text_limit = static_cast<std::uint32_t>(limit - module_.load_bias)});
  is_suspect_ |= memory.has_failed();
  AddStackProbes(text, compiled);
  return compiled;
}

void ModuleTables::ReadIndex() {
  // An earlier call may have run out of memory and left a part of the index.
  in_memory_ = NewIndex();
  in_file_ = NewIndex();
  const bool has_header = module_.unwind_address != 0;
  has_all_ = !has_header || !in_memory_.ReadSorted(module_.unwind_address);
  Address eh_frame = 0;
  if (has_all_) eh_frame = has_header ? EhFrameOfHeader(is_suspect_) : module_.eh_frame_address;
  if (eh_frame != 0) {
    in_memory_.Scan(eh_frame, module_.eh_frame_bytes == 0 ? FdeIndex::kMaxEhFrameBytes
                                                          : module_.eh_frame_bytes);
  }
  if (!MayHaveDebugFrame(module_, sources_)) return;
  // The functions that only the file's .debug_frame has.
  std::vector<std::uint8_t> debug_frame = sources_.read_debug_frame(module_);
  MakeEhFrame(debug_frame, module_.load_bias);
  in_file_.Scan(std::move(debug_frame));
  in_file_.Remove(in_memory_);
}

Address ModuleTables::EhFrameOfHeader(bool& is_unread) const {
  std::array<std::uint8_t, 16> header{};
  const std::size_t got = read_(module_.unwind_address, header);
  is_unread |= got == 0;
  return EhFrameAddress(std::span(header).first(got), module_.unwind_address);
}

// True if there are more functions than the linker's index has.
bool ModuleTables::ReadAllOfEhFrame() {
  has_all_ = true;
  bool is_unread = false;
  const Address eh_frame = EhFrameOfHeader(is_unread);
  if (eh_frame == 0) return false;
  FdeIndex all = NewIndex();
  if (!all.Scan(eh_frame, FdeIndex::kMaxEhFrameBytes) || all.has_failed() ||
      all.functions() <= in_memory_.functions())
    return false;
  in_memory_ = std::move(all);
  if (!in_file_.empty()) in_file_.Remove(in_memory_);
  return true;
}

}  // namespace strobe::internal
