#include "epilogue_instruction.h"

#include <cstring>

namespace strobe::internal {
namespace {

// The instructions that epilogues are made of (Intel's manual, volume 2).
class Decoder {
 public:
  explicit Decoder(std::span<const std::uint8_t> code) : code_(code) {}

  [[nodiscard]] EpilogueInstruction At(std::size_t at) const {
    using Kind = EpilogueInstruction::Kind;
    const std::uint8_t first = Byte(at);
    const bool has_rex = (first & 0xF0) == 0x40;
    const unsigned rex = has_rex ? first : 0;
    const std::size_t opcode = at + (has_rex ? 1 : 0);
    const std::size_t prefix = opcode - at;
    const std::uint8_t code = Byte(opcode);
    const std::uint8_t modrm = Byte(opcode + 1);
    const unsigned high = (rex & 1) << 3;
    if (code >= 0x58 && code <= 0x5F)
      return Checked(at, {Kind::kPop, prefix + 1, (code & 7u) | high, 0});
    if (code == 0xC3) return Checked(at, {Kind::kExit, prefix + 1});
    if (code == 0xC2) return Checked(at, {Kind::kExit, prefix + 3});
    if (code == 0xF3 && modrm == 0xC3) return Checked(at, {Kind::kExit, 2});
    if (code == 0xC9) return Checked(at, {Kind::kLeave, prefix + 1});
    if (!has_rex && code == 0xC5 && modrm == 0xF8 && Byte(at + 2) == 0x77)
      return Checked(at, {Kind::kNothing, 3});  // vzeroupper
    if (code == 0xEB) return Jump(at, prefix + 2, static_cast<std::int8_t>(modrm));
    if (code == 0xE9) return Jump(at, prefix + 5, Word(opcode + 1));
    if (code == 0xFF && modrm == 0x25)
      return Checked(at, {Kind::kExit, prefix + 6});  // jmp [rip + n]
    if (code == 0xFF && (modrm & 0xF8) == 0xE0)
      return Checked(at, {Kind::kExit, prefix + 2});  // jmp register
    if ((rex & 8) == 0 || (rex & 6) != 0) return {};
    if (code == 0x83 && modrm == 0xC4 && high == 0)
      return Checked(at, {Kind::kRelease, prefix + 3, X86_64Encoding::kRsp,
                          static_cast<std::int8_t>(Byte(opcode + 2))});
    if (code == 0x81 && modrm == 0xC4 && high == 0)
      return Checked(at, {Kind::kRelease, prefix + 6, X86_64Encoding::kRsp, Word(opcode + 2)});
    const unsigned base = (modrm & 7u) | high;
    if (code == 0x8B && (modrm & 0xF8) == 0xE0)
      return Checked(at, {Kind::kRelease, prefix + 2, base, 0});  // mov rsp, register
    if (code == 0x89 && (modrm & 0xC7) == 0xC4 && high == 0) {    // the same, in the other encoding
      return Checked(at, {Kind::kRelease, prefix + 2, modrm >> 3 & 7u, 0});
    }
    if (code != 0x8D || (modrm >> 3 & 7) != 4 || (modrm & 7) == 4)
      return {};  // lea rsp, [register + n]
    if (modrm >> 6 == 1)
      return Checked(
          at, {Kind::kRelease, prefix + 3, base, static_cast<std::int8_t>(Byte(opcode + 2))});
    if (modrm >> 6 == 2) return Checked(at, {Kind::kRelease, prefix + 6, base, Word(opcode + 2)});
    return {};
  }

 private:
  [[nodiscard]] std::uint8_t Byte(std::size_t at) const {
    return at < code_.size() ? code_[at] : 0;
  }
  [[nodiscard]] std::int32_t Word(std::size_t at) const {
    std::int32_t word = 0;
    if (at + sizeof(word) <= code_.size()) std::memcpy(&word, code_.data() + at, sizeof(word));
    return word;
  }
  [[nodiscard]] EpilogueInstruction Checked(std::size_t at, EpilogueInstruction instruction) const {
    return at + instruction.bytes <= code_.size() ? instruction : EpilogueInstruction();
  }
  [[nodiscard]] EpilogueInstruction Jump(std::size_t at, std::size_t bytes,
                                         std::int32_t distance) const {
    if (at + bytes > code_.size()) return {};
    const std::int64_t target = static_cast<std::int64_t>(at + bytes) + distance;
    if (target < 0 || target >= static_cast<std::int64_t>(code_.size()))
      return {EpilogueInstruction::Kind::kExit, bytes};
    return {EpilogueInstruction::Kind::kJumpWithin, bytes, X86_64Encoding::kRsp,
            static_cast<std::int32_t>(target)};
  }

  std::span<const std::uint8_t> code_;
};

}  // namespace

EpilogueInstruction DecodeEpilogueInstruction(std::span<const std::uint8_t> function,
                                              std::size_t at) {
  return Decoder(function).At(at);
}

}  // namespace strobe::internal
