#include "written_registers.h"

namespace strobe::internal {
namespace {

constexpr RegisterSet kOnlyRax = 1u << 0;
constexpr RegisterSet kOnlyRcx = 1u << 1;
constexpr RegisterSet kOnlyRdx = 1u << 2;
constexpr RegisterSet kOnlyRbx = 1u << 3;
constexpr RegisterSet kOnlyRsp = 1u << 4;
constexpr RegisterSet kOnlyRbp = 1u << 5;
constexpr RegisterSet kOnlyRsi = 1u << 6;
constexpr RegisterSet kOnlyRdi = 1u << 7;
constexpr RegisterSet kOnlyR11 = 1u << 11;

// What an opcode writes: operands of its modrm byte, and registers that it does not name.
struct Writes {
  enum Operands : std::uint8_t {
    kNothing = 0,
    kRegister = 1,
    kRegisterOrMemory = 2,
    kBoth = 3,
    kVector = 4,  // the register that a vector's prefix names
    kRegisterAndVector = 5,
  };
  Operands operands = kNothing;
  RegisterSet others = 0;
  bool is_byte = false;  // the operands have 8 bits
};

// Of 8 bits: without a prefix of registers, the second four are ah, ch, dh and bh.
unsigned ByteRegister(const InstructionParts& parts, unsigned number) {
  return parts.rex == 0 ? number & 3 : number;
}

Writes OfArithmetic(std::uint8_t opcode) {
  const unsigned form = opcode & 7;
  const bool is_byte = (form & 1) == 0;
  if (opcode >= 0x38) return {};  // comparisons
  if (form < 2) return {.operands = Writes::kRegisterOrMemory, .is_byte = is_byte};
  if (form < 4) return {.operands = Writes::kRegister, .is_byte = is_byte};
  return {.others = kOnlyRax};
}

// Strings, and what counts by rcx.
RegisterSet OfStrings(const InstructionParts& parts) {
  const RegisterSet count = parts.repeats || parts.repeats_not ? kOnlyRcx : RegisterSet{0};
  switch (parts.opcode() & 0xFE) {
    case 0x6C:
    case 0xAA:
    case 0xAE: return kOnlyRdi | count;
    case 0x6E: return kOnlyRsi | count;
    case 0xA4:
    case 0xA6: return kOnlyRsi | kOnlyRdi | count;
    case 0xAC: return kOnlyRax | kOnlyRsi | count;
    default: return 0;
  }
}

// Those that write rax, or another that they do not name.
RegisterSet OfFixed(const InstructionParts& parts) {
  const std::uint8_t opcode = parts.opcode();
  switch (opcode) {
    case 0x98:
    case 0x9F:
    case 0xA0:
    case 0xA1:
    case 0xD7:
    case 0xE4:
    case 0xE5:
    case 0xEC:
    case 0xED: return kOnlyRax;
    case 0x99: return kOnlyRdx;
    case 0xC8: return kOnlyRbp;
    case 0xC9: return kOnlyRbp | kOnlyRsp;
    case 0xCD: return kAllRegisters;
    case 0xDF: return parts.modrm() == 0xE0 ? kOnlyRax : RegisterSet{0};  // fnstsw
    case 0xE0:
    case 0xE1:
    case 0xE2: return kOnlyRcx;
    default: break;
  }
  const unsigned named = parts.opcode_register();
  if (opcode >= 0x58 && opcode <= 0x5F) return SetOf(named);
  if (opcode >= 0x90 && opcode <= 0x97)
    return named == 0 ? RegisterSet{0} : kOnlyRax | SetOf(named);
  if (opcode >= 0xB0 && opcode <= 0xB7) return SetOf(ByteRegister(parts, named));
  if (opcode >= 0xB8 && opcode <= 0xBF) return SetOf(named);
  return OfStrings(parts);
}

Writes OfOneByte(const InstructionParts& parts) {
  const std::uint8_t opcode = parts.opcode();
  const unsigned extension = parts.extension();
  const bool is_byte = (opcode & 1) == 0;
  if (opcode < 0x40) return OfArithmetic(opcode);
  switch (opcode) {
    case 0x63:
    case 0x69:
    case 0x6B:
    case 0x8D: return {.operands = Writes::kRegister};
    case 0x8A:
    case 0x8B: return {.operands = Writes::kRegister, .is_byte = is_byte};
    case 0x80:
    case 0x81:
    case 0x83:
      if (extension == 7) return {};
      return {.operands = Writes::kRegisterOrMemory, .is_byte = is_byte};
    case 0x86:
    case 0x87: return {.operands = Writes::kBoth, .is_byte = is_byte};
    case 0x8C:
    case 0x8F: return {.operands = Writes::kRegisterOrMemory};
    case 0xC6:
    case 0xC7:
      if (extension == 7) return {.others = kOnlyRax};  // xabort, xbegin
      return {.operands = Writes::kRegisterOrMemory, .is_byte = is_byte};
    case 0x88:
    case 0x89:
    case 0xC0:
    case 0xC1:
    case 0xD0:
    case 0xD1:
    case 0xD2:
    case 0xD3: return {.operands = Writes::kRegisterOrMemory, .is_byte = is_byte};
    case 0xF6:
    case 0xF7:
      if (extension < 2) return {};
      if (extension < 4) return {.operands = Writes::kRegisterOrMemory, .is_byte = is_byte};
      return {.others = static_cast<RegisterSet>(is_byte ? kOnlyRax : kOnlyRax | kOnlyRdx)};
    case 0xFE:
    case 0xFF:
      if (extension > 1) return {};
      return {.operands = Writes::kRegisterOrMemory, .is_byte = is_byte};
    default: return {.others = OfFixed(parts)};
  }
}

// Those behind 0F that write registers which they do not name.
RegisterSet OfSystem(const InstructionParts& parts) {
  switch (parts.opcode()) {
    case 0x05: return kOnlyRax | kOnlyRcx | kOnlyR11;  // syscall
    case 0x07:
    case 0x34:
    case 0x35:
    case 0xAA: return kAllRegisters;
    case 0x01:  // xgetbv, rdpkru, rdtscp and their like
      return parts.has_register_operand() ? kOnlyRax | kOnlyRcx | kOnlyRdx | kOnlyRbx
                                          : RegisterSet{0};
    case 0x31:
    case 0x32:
    case 0x33: return kOnlyRax | kOnlyRdx;
    case 0x37:
    case 0xA2: return kOnlyRax | kOnlyRcx | kOnlyRdx | kOnlyRbx;  // getsec, cpuid
    default: return 0;
  }
}

// Groups behind 0F, in which the modrm byte says the operation.
Writes OfGroups(const InstructionParts& parts) {
  const unsigned extension = parts.extension();
  const bool has_register = parts.has_register_operand();
  bool is_written = false;
  switch (parts.opcode()) {
    case 0x00: is_written = extension < 2; break;
    case 0x01: is_written = has_register && extension == 4; break;                   // smsw
    case 0x1E: is_written = parts.repeats && has_register && extension == 1; break;  // rdssp
    case 0xAE: is_written = parts.repeats && has_register && extension < 2; break;   // rdfsbase
    case 0xBA: is_written = extension > 4; break;
    case 0xC7:
      if (!has_register)
        return {.others = static_cast<RegisterSet>(extension == 1 ? kOnlyRax | kOnlyRdx
                                                                  : 0)};  // cmpxchg16b
      is_written = true;
      break;
    default: break;
  }
  if (is_written) return {.operands = Writes::kRegisterOrMemory};
  return {.others = OfSystem(parts)};
}

Writes OfTwoBytes(const InstructionParts& parts) {
  const std::uint8_t opcode = parts.opcode();
  if (opcode >= 0x40 && opcode <= 0x4F) return {.operands = Writes::kRegister};
  if (opcode >= 0x90 && opcode <= 0x9F)
    return {.operands = Writes::kRegisterOrMemory, .is_byte = true};
  if (opcode >= 0xC8 && opcode <= 0xCF) return {.others = SetOf(parts.opcode_register())};
  switch (opcode) {
    case 0x02:
    case 0x03:
    case 0x2C:
    case 0x2D:
    case 0x50:
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
    case 0xD7: return {.operands = Writes::kRegister};
    case 0x7E:
      if (parts.repeats) return {};  // to a vector
      return {.operands = Writes::kRegisterOrMemory};
    case 0x20:
    case 0x21:
    case 0xA4:
    case 0xA5:
    case 0xAB:
    case 0xAC:
    case 0xAD:
    case 0xB3:
    case 0xBB: return {.operands = Writes::kRegisterOrMemory};
    case 0xB0:
    case 0xB1:
      return {.operands = Writes::kRegisterOrMemory, .others = kOnlyRax, .is_byte = opcode == 0xB0};
    case 0xC0:
    case 0xC1: return {.operands = Writes::kBoth, .is_byte = opcode == 0xC0};
    default: return OfGroups(parts);
  }
}

// Behind a vector's prefix: few write general registers.
Writes OfVectors(const InstructionParts& parts) {
  const std::uint8_t opcode = parts.opcode();
  const auto writes = [](Writes::Operands operands) { return Writes{.operands = operands}; };
  if (parts.map == 2 || parts.map == 6) {
    const bool is_register = opcode == 0x2C || opcode == 0x2D || opcode == 0x50 || opcode == 0x78 ||
                             opcode == 0x79 || opcode == 0x93 || opcode == 0xC5 || opcode == 0xD7;
    if (is_register) return writes(Writes::kRegister);
    return writes(opcode == 0x7E && !parts.repeats ? Writes::kRegisterOrMemory : Writes::kNothing);
  }
  if (parts.map == 3) {
    if (opcode == 0xF3) return writes(Writes::kVector);
    if (opcode == 0xF6) return writes(Writes::kRegisterAndVector);
    const bool is_register = opcode >= 0xE0 && opcode <= 0xF7 && opcode != 0xF1;
    return writes(is_register ? Writes::kRegister : Writes::kNothing);
  }
  if (parts.map == 4 && opcode == 0xF0) return writes(Writes::kRegister);
  if (parts.map == 10 && (opcode == 0x01 || opcode == 0x02)) return writes(Writes::kVector);
  if (parts.map == 10 && opcode == 0x12) return writes(Writes::kRegisterOrMemory);
  return writes(parts.map == 11 ? Writes::kRegister : Writes::kNothing);
}

// Behind 0F 38 and 0F 3A.
Writes OfThreeBytes(const InstructionParts& parts) {
  const std::uint8_t opcode = parts.opcode();
  if (parts.map == 3) {
    const bool is_store = opcode == 0xF1 && !parts.repeats_not;  // movbe
    const bool is_register = opcode >= 0xF0 && opcode <= 0xFB && !is_store;
    return {.operands = is_register ? Writes::kRegister : Writes::kNothing};
  }
  return {};
}

Writes WritesOf(const InstructionParts& parts) {
  const std::uint8_t opcode = parts.opcode();
  // Parts of vectors go to general registers, and comparisons of strings give an index.
  if (parts.map == 4 && opcode >= 0x14 && opcode <= 0x17)
    return {.operands = Writes::kRegisterOrMemory};
  if (parts.map == 4 && (opcode == 0x61 || opcode == 0x63)) return {.others = kOnlyRcx};
  if (parts.is_vector) return OfVectors(parts);
  return parts.map == 1   ? OfOneByte(parts)
         : parts.map == 2 ? OfTwoBytes(parts)
                          : OfThreeBytes(parts);
}

}  // namespace

RegisterSet WrittenRegisters(const InstructionParts& parts) {
  const Writes writes = WritesOf(parts);
  const auto set_of = [&](unsigned number) {
    return SetOf(writes.is_byte ? ByteRegister(parts, number) : number);
  };
  RegisterSet written = writes.others;
  if ((writes.operands & Writes::kRegister) != 0) written |= set_of(parts.reg());
  if ((writes.operands & Writes::kRegisterOrMemory) != 0 && parts.has_register_operand())
    written |= set_of(parts.operand());
  if ((writes.operands & Writes::kVector) != 0) written |= SetOf(parts.vector_register);
  return written;
}

}  // namespace strobe::internal
