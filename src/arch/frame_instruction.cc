#include "frame_instruction.h"

#include <array>
#include <cstring>

#include "instruction_bytes.h"

namespace strobe::internal {
namespace {

using Kind = FrameInstruction::Kind;

constexpr unsigned kRsp = X86_64Encoding::kRsp;
constexpr unsigned kRbp = X86_64Encoding::kRbp;

// An instruction behind its prefixes.
struct Parts {
  std::span<const std::uint8_t> code;  // all of it, and no more
  std::size_t at = 0;                  // of the opcode, in its map
  unsigned map = 1;                    // 1: one byte; 2: behind 0F; 3: behind 0F 38; 4: 0F 3A
  unsigned rex = 0;
  unsigned vector_register = FrameInstruction::kNoRegister;  // that a vector's prefix names
  bool is_vector = false;                                    // has such a prefix
  bool has_16_bits = false;
  bool repeats = false;  // F3

  [[nodiscard]] std::uint8_t opcode() const { return Byte(at); }
  [[nodiscard]] std::uint8_t Byte(std::size_t index) const {
    return index < code.size() ? code[index] : 0;
  }
  [[nodiscard]] std::uint8_t modrm() const { return Byte(at + 1); }
  [[nodiscard]] bool has_register_operand() const { return modrm() >> 6 == 3; }
  [[nodiscard]] unsigned reg() const { return (modrm() >> 3 & 7u) | (rex & 4) << 1; }
  [[nodiscard]] unsigned operand() const { return (modrm() & 7u) | (rex & 1) << 3; }
  [[nodiscard]] unsigned extension() const { return modrm() >> 3 & 7u; }
  [[nodiscard]] bool has_64_bits() const { return (rex & 8) != 0; }

  // The number that the instruction ends with.
  [[nodiscard]] std::int32_t Last(std::size_t bytes) const {
    if (bytes == 1) return static_cast<std::int8_t>(code.back());
    std::int32_t number = 0;
    if (code.size() >= sizeof(number))
      std::memcpy(&number, code.data() + code.size() - sizeof(number), sizeof(number));
    return number;
  }
};

Parts Split(std::span<const std::uint8_t> code) {
  Parts parts{.code = code};
  std::size_t& at = parts.at;
  for (; at < code.size() && IsInstructionPrefix(code[at]); ++at) {
    parts.has_16_bits |= code[at] == 0x66;
    parts.repeats |= code[at] == 0xF3;
  }
  if ((parts.Byte(at) & 0xF0) == 0x40) parts.rex = parts.Byte(at++);
  const std::uint8_t first = parts.Byte(at);
  if (first == 0xC5 || first == 0xC4 || first == 0x62) {
    // The prefixes of vectors: inverted bits of rex, a map, and the register of a third operand.
    const std::uint8_t second = parts.Byte(at + 1);
    const std::uint8_t third = parts.Byte(at + (first == 0xC5 ? 1 : 2));
    parts.is_vector = true;
    parts.rex = 0x40u | ((second & 0x80) == 0 ? 4 : 0);
    if (first != 0xC5 && (second & 0x20) == 0) parts.rex |= 1;
    parts.map = first == 0xC5 ? 2 : 1 + (second & 7u);
    parts.vector_register = ~(third >> 3) & 15u;
    at += first == 0xC5 ? 2 : first == 0xC4 ? 3 : 4;
    return parts;
  }
  if (first != 0x0F) return parts;
  ++at;
  parts.map = 2;
  if (parts.Byte(at) == 0x38 || parts.Byte(at) == 0x3A) {
    parts.map = parts.Byte(at) == 0x38 ? 3 : 4;
    ++at;
  }
  return parts;
}

constexpr std::uint16_t Bit(unsigned number) {
  return number < FrameInstruction::kNoRegister ? static_cast<std::uint16_t>(1u << number) : 0;
}

// Which operands of the modrm byte an opcode writes.
enum Writes : std::uint8_t { kWritesNothing = 0, kRegister = 1, kRegisterOrMemory = 2, kBoth = 3 };

Writes WritesOfOneByte(const Parts& parts) {
  const std::uint8_t opcode = parts.opcode();
  if (opcode < 0x38)
    return (opcode & 7) < 2 ? kRegisterOrMemory : (opcode & 7) < 4 ? kRegister : kWritesNothing;
  if (opcode < 0x40) return kWritesNothing;  // comparisons
  switch (opcode) {
    case 0x63:
    case 0x69:
    case 0x6B:
    case 0x8A:
    case 0x8B:
    case 0x8D: return kRegister;
    case 0x80:
    case 0x81:
    case 0x83: return parts.extension() == 7 ? kWritesNothing : kRegisterOrMemory;
    case 0x86:
    case 0x87: return kBoth;
    case 0x88:
    case 0x89:
    case 0x8C:
    case 0x8F:
    case 0xC0:
    case 0xC1:
    case 0xC6:
    case 0xC7:
    case 0xD0:
    case 0xD1:
    case 0xD2:
    case 0xD3: return kRegisterOrMemory;
    case 0xF6:
    case 0xF7:
      return parts.extension() == 2 || parts.extension() == 3 ? kRegisterOrMemory : kWritesNothing;
    case 0xFE:
    case 0xFF: return parts.extension() < 2 ? kRegisterOrMemory : kWritesNothing;
    default: return kWritesNothing;
  }
}

Writes WritesOfTwoBytes(std::uint8_t opcode) {
  if (opcode >= 0x40 && opcode <= 0x4F) return kRegister;
  if (opcode >= 0x90 && opcode <= 0x9F) return kRegisterOrMemory;
  switch (opcode) {
    case 0x02:
    case 0x03:
    case 0x2C:
    case 0x2D:
    case 0x50:
    case 0x93:
    case 0xAF:
    case 0xB2:
    case 0xB4:
    case 0xB5:
    case 0xB6:
    case 0xB7:
    case 0xB8:
    case 0xBC:
    case 0xBD:
    case 0xBE:
    case 0xBF:
    case 0xC5:
    case 0xD7: return kRegister;
    case 0x00:
    case 0x01:
    case 0x20:
    case 0x21:
    case 0x7E:
    case 0xA4:
    case 0xA5:
    case 0xAB:
    case 0xAC:
    case 0xAD:
    case 0xB0:
    case 0xB1:
    case 0xB3:
    case 0xBA:
    case 0xBB:
    case 0xC7: return kRegisterOrMemory;
    case 0xC0:
    case 0xC1: return kBoth;
    default: return kWritesNothing;
  }
}

// Where vectors move to general registers, and the newer operations on these.
Writes WritesOfOthers(const Parts& parts) {
  const std::uint8_t opcode = parts.opcode();
  if (parts.map == 3) return opcode >= 0xF0 ? kBoth : kWritesNothing;
  if (parts.map == 4)
    return (opcode >= 0x14 && opcode <= 0x17) || opcode == 0xF0 ? kBoth : kWritesNothing;
  return kWritesNothing;
}

std::uint16_t Written(const Parts& parts) {
  const std::uint8_t opcode = parts.opcode();
  const auto low = static_cast<unsigned>((opcode & 7u) | (parts.rex & 1) << 3);
  if (parts.map == 1 && ((opcode >= 0x90 && opcode <= 0x97) || (opcode >= 0xB0 && opcode <= 0xBF)))
    return opcode == 0x90 && (parts.rex & 1) == 0 ? std::uint16_t{0} : Bit(low);
  if (parts.map == 2 && opcode >= 0xC8 && opcode <= 0xCF) return Bit(low);
  if (parts.map == 2 && opcode == 0xA2) return Bit(X86_64Encoding::kRbx);  // cpuid
  const Writes writes = parts.map == 1   ? WritesOfOneByte(parts)
                        : parts.map == 2 ? WritesOfTwoBytes(opcode)
                                         : WritesOfOthers(parts);
  std::uint16_t written = 0;
  if ((writes & kRegister) != 0) written |= Bit(parts.reg());
  if ((writes & kRegisterOrMemory) != 0 && parts.has_register_operand())
    written |= Bit(parts.operand());
  if (parts.is_vector && writes != kWritesNothing && parts.map == 3)
    written |= Bit(parts.vector_register);
  return written;
}

// The displacement of an operand [base + displacement] without an index; false for others.
bool IsBased(const Parts& parts, unsigned base, std::int32_t& displacement) {
  const unsigned mode = parts.modrm() >> 6;
  if (mode == 3 || parts.operand() != base || (mode == 0 && base == kRbp)) return false;
  std::size_t at = parts.at + 2;
  if (base == kRsp && parts.Byte(at++) != 0x24) return false;
  displacement = mode == 1 ? static_cast<std::int8_t>(parts.Byte(at)) : 0;
  if (mode == 2) {
    if (at + sizeof(displacement) > parts.code.size()) return false;
    std::memcpy(&displacement, parts.code.data() + at, sizeof(displacement));
  }
  return true;
}

// What an instruction with a 64-bit operand does to the stack pointer, and what it keeps on the
// stack. Nothing that is not described here.
void FindFrameEffect(const Parts& parts, FrameInstruction& found) {
  const std::uint8_t opcode = parts.opcode();
  const bool is_add = (opcode == 0x81 || opcode == 0x83) && parts.has_register_operand() &&
                      parts.operand() == kRsp && (parts.extension() == 0 || parts.extension() == 5);
  const auto set = [&](Kind kind, unsigned number, std::int32_t offset) {
    found.kind = kind;
    found.register_number = static_cast<std::uint8_t>(number);
    found.offset = offset;
  };
  std::int32_t displacement = 0;
  if (is_add) {
    const std::int32_t amount = parts.Last(opcode == 0x83 ? 1 : 4);
    if (amount != INT32_MIN) set(Kind::kMoveSp, kRsp, parts.extension() == 0 ? amount : -amount);
  } else if ((opcode == 0x89 || opcode == 0x8B) && parts.has_register_operand()) {
    const unsigned from = opcode == 0x89 ? parts.reg() : parts.operand();
    const unsigned to = opcode == 0x89 ? parts.operand() : parts.reg();
    if (from == kRsp && to == kRsp)
      set(Kind::kMoveSp, kRsp, 0);
    else if (from == kRsp)
      set(Kind::kSpToRegister, to, 0);
    else if (from == kRbp && to == kRsp)
      set(Kind::kFpToSp, kRbp, 0);
  } else if (opcode == 0x8D && IsBased(parts, kRsp, displacement)) {
    if (parts.reg() == kRsp)
      set(Kind::kMoveSp, kRsp, displacement);
    else
      set(Kind::kSpToRegister, parts.reg(), displacement);
  } else if (opcode == 0x8D && parts.reg() == kRsp && IsBased(parts, kRbp, displacement)) {
    set(Kind::kFpToSp, kRbp, displacement);
  } else if (opcode == 0x8D && (parts.modrm() & 0xC7) == 0x05) {
    set(Kind::kAddress, parts.reg(), parts.Last(4));
  } else if ((opcode == 0x89 || opcode == 0x8B) && IsBased(parts, kRsp, displacement)) {
    set(opcode == 0x89 ? Kind::kStore : Kind::kLoad, parts.reg(), displacement);
  }
}

// Pushes, pops, and what goes elsewhere. True if the instruction is one of them.
bool FindTransfer(const Parts& parts, FrameInstruction& found) {
  const std::uint8_t opcode = parts.opcode();
  const auto is = [&](Kind kind, std::int32_t offset = 0, unsigned number = 16) {
    found.kind = kind;
    found.offset = offset;
    found.register_number = static_cast<std::uint8_t>(number);
    return true;
  };
  if (opcode >= 0x50 && opcode <= 0x5F)
    return is(opcode < 0x58 ? Kind::kPush : Kind::kPop, 0, (opcode & 7u) | (parts.rex & 1) << 3);
  if (opcode >= 0x70 && opcode <= 0x7F) return is(Kind::kBranch, parts.Last(1));
  switch (opcode) {
    case 0x68:
    case 0x6A:
    case 0x9C: return is(Kind::kPush);
    case 0x9D: return is(Kind::kPop);
    case 0x8F: return is(Kind::kPop, 0, parts.has_register_operand() ? parts.operand() : 16);
    case 0xC2:
    case 0xC3: return is(opcode == 0xC3 ? Kind::kReturn : Kind::kInvalid);
    case 0xC9: return is(Kind::kLeave);
    case 0xCC:
    case 0xF4: return is(Kind::kEnd);
    case 0xE0:
    case 0xE1:
    case 0xE2:
    case 0xE3: return is(Kind::kBranch, parts.Last(1));
    case 0xE8:
      // A call of the next instruction is made for the address that it leaves.
      found.has_target = parts.Last(4) != 0;
      return found.has_target ? is(Kind::kCall, parts.Last(4)) : is(Kind::kPush);
    case 0xE9: return is(Kind::kJump, parts.Last(4));
    case 0xEB: return is(Kind::kJump, parts.Last(1));
    case 0xC8:
    case 0xCA:
    case 0xCB:
    case 0xCF: return is(Kind::kInvalid);  // enter, and returns that compilers do not write
    default: break;
  }
  if (opcode != 0xFF) return false;
  if (parts.extension() == 2) return is(Kind::kCall);
  if (parts.extension() == 4) return is(Kind::kJumpThrough);
  if (parts.extension() == 6) return is(Kind::kPush);
  return parts.extension() > 2 ? is(Kind::kInvalid) : false;
}

}  // namespace

FrameInstruction DecodeFrameInstruction(std::span<const std::uint8_t> code) {
  FrameInstruction found;
  const std::size_t bytes = InstructionBytes(code);
  if (bytes == 0) return found;
  const Parts parts = Split(code.first(bytes));
  found.bytes = static_cast<std::uint8_t>(bytes);
  found.kind = Kind::kOther;
  const std::uint8_t opcode = parts.opcode();
  if (parts.map == 1) {
    const bool has_transfer = FindTransfer(parts, found);
    // With a prefix of 16 bits these move another number of bytes.
    if (has_transfer && parts.has_16_bits && found.kind != Kind::kReturn)
      found.kind = Kind::kInvalid;
    if (has_transfer) return found;
    if (parts.has_64_bits() && !parts.has_16_bits) FindFrameEffect(parts, found);
    found.is_nothing = opcode == 0x90 && (parts.rex & 1) == 0 && !parts.repeats;
  } else if (parts.map == 2 && !parts.is_vector) {
    if (opcode >= 0x80 && opcode <= 0x8F) {
      found.kind = Kind::kBranch;
      found.offset = parts.Last(4);
    } else if (opcode == 0x0B || opcode == 0xB9 || opcode == 0xFF) {
      found.kind = Kind::kEnd;
    }
    found.is_nothing = opcode == 0x1F;
  }
  if (found.kind == Kind::kOther || found.kind == Kind::kLoad ||
      found.kind == Kind::kSpToRegister || found.kind == Kind::kAddress)
    found.written = Written(parts);
  return found;
}

}  // namespace strobe::internal
