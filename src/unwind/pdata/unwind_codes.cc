#include "unwind_codes.h"

#include <array>
#include <cstring>
#include <span>

namespace strobe::internal {
namespace {

// UNWIND_INFO's flags.
constexpr unsigned kIsChained = 4;
// UNWIND_CODE's operations.
enum Operation : std::uint8_t {
  kPushNonvolatile = 0,
  kAllocateLarge = 1,
  kAllocateSmall = 2,
  kSetFrameRegister = 3,
  kSaveNonvolatile = 4,
  kSaveNonvolatileFar = 5,
  kEpilogue = 6,  // version 2; before, two slots of a register that is not kept
  kSpare = 7,
  kSaveXmm = 8,
  kSaveXmmFar = 9,
  kPushMachineFrame = 10,
};

// Up to 255 codes of two bytes, one more to fill up, and an entry.
struct RawUnwindInfo {
  std::uint8_t version_and_flags;
  std::uint8_t prologue_bytes;
  std::uint8_t code_count;
  std::uint8_t frame_register_and_offset;
};
static_assert(sizeof(RawUnwindInfo) == 4);
constexpr std::size_t kMaxInfoBytes = sizeof(RawUnwindInfo) + 256 * 2 + sizeof(RuntimeFunction);

// One UNWIND_INFO.
struct UnwindInfo {
  std::uint8_t prologue_bytes = 0;
  UnwindCodes::Part part;
  std::optional<RuntimeFunction> continued;
};

class SlotReader {
 public:
  explicit SlotReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool ok() const { return is_ok_; }
  [[nodiscard]] bool at_end() const { return position_ >= bytes_.size(); }
  std::uint16_t Next() {
    if (bytes_.size() - position_ < 2) {
      is_ok_ = false;
      position_ = bytes_.size();
      return 0;
    }
    const auto slot = static_cast<std::uint16_t>(bytes_[position_] | bytes_[position_ + 1] << 8);
    position_ += 2;
    return slot;
  }
  std::uint32_t NextWide() {
    const std::uint32_t low = Next();
    return low | std::uint32_t{Next()} << 16;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
  bool is_ok_ = true;
};

// Adds the next code to `codes`, unless it concerns no register that walks follow. False if the
// code is unknown.
bool ReadCode(SlotReader& slots, unsigned version, std::vector<UnwindCode>& codes) {
  using Kind = UnwindCode::Kind;
  const std::uint16_t slot = slots.Next();
  const auto offset = static_cast<std::uint8_t>(slot);
  const auto operation = static_cast<std::uint8_t>(slot >> 8 & 15);
  const auto info = static_cast<std::uint8_t>(slot >> 12);
  const auto add = [&](Kind kind, std::uint8_t register_number, std::uint32_t bytes) {
    codes.push_back({.kind = kind,
                     .register_number = register_number,
                     .prologue_offset = offset,
                     .bytes = bytes});
  };
  switch (operation) {
    case kPushNonvolatile: add(Kind::kPush, info, 8); break;
    case kAllocateLarge:
      add(Kind::kAllocate, 0, info == 0 ? slots.Next() * 8u : slots.NextWide());
      break;
    case kAllocateSmall: add(Kind::kAllocate, 0, info * 8u + 8); break;
    case kSetFrameRegister: add(Kind::kSetFrame, 0, 0); break;
    case kSaveNonvolatile: add(Kind::kSave, info, slots.Next() * 8u); break;
    case kSaveNonvolatileFar: add(Kind::kSave, info, slots.NextWide()); break;
    case kEpilogue:
      if (version == 1) slots.Next();
      break;
    case kSpare: slots.NextWide(); break;
    case kSaveXmm: slots.Next(); break;
    case kSaveXmmFar: slots.NextWide(); break;
    case kPushMachineFrame: add(Kind::kMachineFrame, 0, info == 0 ? 0 : 8); break;
    default: return false;
  }
  return slots.ok();
}

std::optional<UnwindInfo> ReadInfo(const AnyMemoryReader& read, std::uint32_t position) {
  std::array<std::uint8_t, kMaxInfoBytes> bytes{};
  const std::size_t got = read(position, bytes);
  RawUnwindInfo raw{};
  if (got < sizeof(raw)) return std::nullopt;
  std::memcpy(&raw, bytes.data(), sizeof(raw));
  const unsigned version = raw.version_and_flags & 7u;
  const std::size_t codes_end = sizeof(raw) + raw.code_count * std::size_t{2};
  if ((version != 1 && version != 2) || codes_end > got) return std::nullopt;
  UnwindInfo info{
      .prologue_bytes = raw.prologue_bytes,
      .part = {.frame_register = static_cast<std::uint8_t>(raw.frame_register_and_offset & 15),
               .frame_offset = static_cast<std::uint8_t>(raw.frame_register_and_offset & 0xF0),
               .codes = {}},
      .continued = {}};
  SlotReader slots({bytes.data() + sizeof(raw), codes_end - sizeof(raw)});
  while (!slots.at_end()) {
    if (!ReadCode(slots, version, info.part.codes)) return std::nullopt;
  }
  if ((raw.version_and_flags >> 3 & kIsChained) != 0) {
    const std::size_t entry = (codes_end + 3) / 4 * 4;
    if (entry + sizeof(RuntimeFunction) > got) return std::nullopt;
    std::memcpy(&info.continued.emplace(), bytes.data() + entry, sizeof(RuntimeFunction));
  }
  return info;
}

// Follows entries that only name another entry, to the position of codes; nothing if there is none.
std::optional<std::uint32_t> CodesPosition(const AnyMemoryReader& read, std::uint32_t position) {
  for (std::size_t i = 0; i < kMaxChainedFunctions && (position & 1) != 0; ++i) {
    RuntimeFunction function;
    std::array<std::uint8_t, sizeof(function)> bytes{};
    if (read(position & ~1u, bytes) < bytes.size()) return std::nullopt;
    std::memcpy(&function, bytes.data(), bytes.size());
    position = function.unwind;
  }
  return (position & 1) == 0 ? std::optional(position) : std::nullopt;
}

// Undoes the codes of one function, the latest first.
void Undo(const UnwindCodes::Part& part, unsigned prologue_offset, PdataFrame& frame) {
  const auto is_done = [&](const UnwindCode& code) {
    return code.prologue_offset <= prologue_offset;
  };
  bool has_frame = false;
  for (const UnwindCode& code : part.codes)
    has_frame |= code.kind == UnwindCode::Kind::kSetFrame && is_done(code);
  has_frame = has_frame && part.frame_register != 0;
  // What saves are counted from: the stack pointer when the frame register was set, or the current
  // one.
  const PdataFrame frame_base = has_frame ? PdataFrame{.base = part.frame_register,
                                                       .offset = -std::int64_t{part.frame_offset},
                                                       .fp = {},
                                                       .special = {}}
                                          : frame;
  const auto save = [&](unsigned number, std::int64_t offset) {
    if (number == X86_64Encoding::kRbp) frame.fp = offset;
    if (number == X86_64Encoding::kRbx) frame.special = offset;
  };
  for (const UnwindCode& code : part.codes) {
    if (!is_done(code) || frame.interrupted) continue;
    switch (code.kind) {
      case UnwindCode::Kind::kPush:
        save(code.register_number, frame.offset);
        frame.offset += code.bytes;
        break;
      case UnwindCode::Kind::kAllocate: frame.offset += code.bytes; break;
      case UnwindCode::Kind::kSetFrame:
        if (!has_frame) break;
        frame.base = frame_base.base;
        frame.offset = frame_base.offset;
        break;
      case UnwindCode::Kind::kSave:
        // Allocations come first in a prologue, so by now `frame` counts from the same register.
        save(code.register_number, frame_base.offset + code.bytes);
        break;
      case UnwindCode::Kind::kMachineFrame:
        frame.offset += code.bytes;
        frame.interrupted = true;
        break;
    }
  }
}

}  // namespace

std::optional<UnwindCodes> ReadUnwindCodes(const AnyMemoryReader& read, std::uint32_t position) {
  UnwindCodes codes;
  while (codes.parts.size() <= kMaxChainedFunctions) {
    const std::optional<std::uint32_t> at = CodesPosition(read, position);
    if (!at) return std::nullopt;
    std::optional<UnwindInfo> info = ReadInfo(read, *at);
    if (!info) return std::nullopt;
    if (codes.parts.empty()) codes.prologue_bytes = info->prologue_bytes;
    codes.parts.push_back(std::move(info->part));
    if (!info->continued) return codes;
    position = info->continued->unwind;
  }
  return std::nullopt;
}

PdataFrame FrameAt(const UnwindCodes& codes, unsigned prologue_offset) {
  PdataFrame frame;
  for (const UnwindCodes::Part& part : codes.parts) {
    Undo(part, prologue_offset, frame);
    prologue_offset = kWholePrologue;
  }
  return frame;
}

CfiState StateOf(const PdataFrame& frame) {
  const std::int64_t cfa = frame.offset + 8;
  const auto saved = [&](const std::optional<std::int64_t>& offset) {
    return offset ? CfiValue{.kind = CfiValue::Kind::kOffset,
                             .number = *offset - cfa,
                             .expression = {}}
                  : CfiValue();
  };
  CfiState state;
  state.cfa_register = X86_64Encoding::ToDwarf(frame.base);
  state.cfa_offset = cfa;
  state.ra = {.kind = CfiValue::Kind::kOffset, .number = -8, .expression = {}};
  state.fp = saved(frame.fp);
  state.special = saved(frame.special);
  return state;
}

}  // namespace strobe::internal
