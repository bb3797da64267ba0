#include "strobe/unwind/known_code.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

namespace strobe {
namespace {

constexpr std::uint8_t kTrampoline[] = {0x68, 0x11, 0x80, 0xD2, 0x01, 0x00, 0x00, 0xD4};
// A handler returns to the first of them, and a return address is looked up one byte lower.
constexpr std::uint32_t kBeforeBytes = 4;

// push rcx; push rax; cmp rax, 4096; lea rcx, [rsp + 24]: the beginning of ___chkstk_ms.
constexpr std::uint8_t kStackProbe[] = {0x51, 0x50, 0x48, 0x3D, 0x00, 0x10, 0x00,
                                        0x00, 0x48, 0x8D, 0x4C, 0x24, 0x18};
// pop rax; pop rcx; ret: its end.
constexpr std::uint8_t kStackProbeEnd[] = {0x58, 0x59, 0xC3};
constexpr std::ptrdiff_t kMaxStackProbeBytes = 64;

// Boost.Context: finish: xor rdi, rdi; call _exit; hlt. Go: goexit: nop; call goexit1; nop; and
// int3 up to the next function.
constexpr std::uint8_t kCall = 0xE8;
constexpr std::size_t kCallBytes = 5;
constexpr std::uint8_t kXorRdi[] = {0x48, 0x31, 0xFF};
constexpr std::uint8_t kHlt[] = {0xF4};
constexpr std::uint8_t kNop[] = {0x90};
constexpr std::uint8_t kNopAndPadding[] = {0x90, 0xCC};

template <std::size_t N>
bool StartsWith(std::span<const std::uint8_t> text, const std::uint8_t (&bytes)[N]) {
  return text.size() >= N && std::equal(std::begin(bytes), std::end(bytes), text.begin());
}
template <std::size_t N>
bool EndsWith(std::span<const std::uint8_t> text, const std::uint8_t (&bytes)[N]) {
  return text.size() >= N && StartsWith(text.last(N), bytes);
}

// The rows with `rule` in [begin, end), whatever they said of it.
std::vector<UnwindRow> Overlay(const std::vector<UnwindRow>& rows, std::uint32_t begin,
                               std::uint32_t end, UnwindRule rule, SavedRegister rbx = {}) {
  std::vector<UnwindRow> result;
  UnwindRow after{.offset = end, .rule = UnwindRule::Unknown()};  // what goes on behind it
  auto row = rows.begin();
  for (; row != rows.end() && row->offset < begin; ++row) {
    result.push_back(*row);
    after = {.offset = end, .rule = row->rule, .rbx = row->rbx};
  }
  for (; row != rows.end() && row->offset <= end; ++row)
    after = {.offset = end, .rule = row->rule, .rbx = row->rbx};
  result.push_back({.offset = begin, .rule = rule, .rbx = rbx});
  result.push_back(after);
  result.insert(result.end(), row, rows.end());
  return result;
}

}  // namespace

SpecialRule Aarch64SignalFrame() {
  // siginfo_t of 128 bytes, then ucontext_t: 176 bytes before the machine's registers, which begin
  // with the fault's address.
  constexpr std::int32_t kX0 = 128 + 176 + 8;
  constexpr std::int32_t kX29 = kX0 + 29 * 8;
  constexpr std::int32_t kX30 = kX29 + 8;
  constexpr std::int32_t kSp = kX30 + 8;
  constexpr std::int32_t kPc = kSp + 8;
  const auto at = [](std::int32_t offset) {
    return SpecialRule::Location{.where = SpecialRule::Where::kMemory,
                                 .base = SpecialRule::Base::kSp,
                                 .other = 0,
                                 .offset = offset};
  };
  return {.cfa = SpecialRule::Cfa::kMemory,
          .cfa_base = SpecialRule::Base::kSp,
          .cfa_other = 0,
          .plt_threshold = 0,
          .cfa_offset = kSp,
          .ra = at(kPc),
          .fp = at(kX29),
          .lr = at(kX30),
          .is_signal_frame = true};
}

void AddAarch64SignalTrampolines(std::span<const std::uint8_t> text, CompiledCfi& compiled) {
  const UnwindRule rule = UnwindRule::Special(static_cast<std::uint32_t>(compiled.specials.size()));
  bool is_found = false;
  for (std::size_t at = kBeforeBytes; at + sizeof(kTrampoline) <= text.size(); at += 4) {
    if (!std::equal(std::begin(kTrampoline), std::end(kTrampoline),
                    text.begin() + static_cast<std::ptrdiff_t>(at)))
      continue;
    const auto begin = static_cast<std::uint32_t>(at) - kBeforeBytes;
    compiled.rows = Overlay(compiled.rows, begin,
                            begin + kBeforeBytes + std::uint32_t{sizeof(kTrampoline)}, rule);
    is_found = true;
  }
  if (is_found) compiled.specials.push_back(Aarch64SignalFrame());
}

void AddStackProbes(std::span<const std::uint8_t> text, CompiledCfi& compiled) {
  const auto offset_of = [&](auto at) { return static_cast<std::uint32_t>(at - text.begin()); };
  const auto pushed = [&](std::uint32_t begin, std::uint32_t end, std::uint32_t words) {
    compiled.rows = Overlay(compiled.rows, begin, end,
                            UnwindRule::Frame(UnwindRule::Kind::kFromSp, 1 + words, 1, 0),
                            {.where = SavedRegister::kUnchanged});
  };
  auto at = text.begin();
  while ((at = std::search(at, text.end(), std::begin(kStackProbe), std::end(kStackProbe))) !=
         text.end()) {
    const auto limit =
        text.end() - at > kMaxStackProbeBytes ? at + kMaxStackProbeBytes : text.end();
    const auto end = std::search(at, limit, std::begin(kStackProbeEnd), std::end(kStackProbeEnd));
    if (end != limit) {
      pushed(offset_of(at) + 1, offset_of(at) + 2, 1);
      pushed(offset_of(at) + 2, offset_of(end) + 1, 2);
      pushed(offset_of(end) + 1, offset_of(end) + 2, 1);
    }
    at += std::size(kStackProbe);
  }
}

void AddCoroutineEnds(std::uint32_t offset, std::span<const std::uint8_t> text,
                      CompiledCfi& compiled) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    // Both have a call with five bytes in their middle, which is quickly looked for.
    const auto* const call =
        static_cast<const std::uint8_t*>(std::memchr(text.data() + at, kCall, text.size() - at));
    if (call == nullptr) return;
    at = static_cast<std::size_t>(call - text.data());
    const auto before = text.first(at);
    const auto after = text.subspan(std::min(at + kCallBytes, text.size()));
    const bool is_finish = EndsWith(before, kXorRdi) && StartsWith(after, kHlt);
    const bool is_goexit = EndsWith(before, kNop) && StartsWith(after, kNopAndPadding);
    const std::size_t end = is_finish ? at - std::size(kXorRdi) : at;
    if (is_finish || is_goexit) AddStackEnd(offset + static_cast<std::uint32_t>(end), compiled);
  }
}

std::vector<UnknownStretch> UnknownStretches(const CompiledCfi& compiled, std::uint32_t text_bytes,
                                             std::uint32_t least_bytes) {
  std::vector<UnknownStretch> stretches;
  std::uint32_t begin = 0;
  bool is_unknown = true;
  const auto end_at = [&](std::uint32_t end) {
    if (is_unknown && end >= begin && end - begin >= least_bytes) stretches.push_back({begin, end});
  };
  for (const UnwindRow& row : compiled.rows) {
    const bool was_unknown = is_unknown;
    if (row.rule != UnwindRule::Unknown()) end_at(row.offset);
    is_unknown = row.rule == UnwindRule::Unknown();
    if (is_unknown && !was_unknown) begin = row.offset;
  }
  end_at(text_bytes);
  return stretches;
}

void AddStackEnd(std::uint32_t offset, CompiledCfi& compiled) {
  if (offset != 0) compiled.rows = Overlay(compiled.rows, offset - 1, offset, UnwindRule::Stop());
}

}  // namespace strobe
