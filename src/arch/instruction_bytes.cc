#include "instruction_bytes.h"

#include <algorithm>
#include <array>

namespace strobe::internal {
namespace {

// What follows an opcode, by Intel's manual, volume 2, appendix A.
enum Follows : std::uint8_t {
  kNone = 0,
  kByte = 1,
  kWord = 2,
  kOperand = 4,      // as long as the operand, but at most four bytes
  kFullOperand = 8,  // as long as the operand
  kAddress = 16,     // as long as an address
  kModrm = 32,
  kTest = 64,  // an operand, if the modrm byte says that it is a test
  kInvalid = 128,
};

using Map = std::array<std::uint8_t, 256>;

constexpr std::size_t kMaxBytes = 15;
// The decoder reads at most this much, also of an instruction that turns out to be too long.
constexpr std::size_t kReadBytes = 2 * kMaxBytes;

constexpr void Fill(Map& map, unsigned first, unsigned last, unsigned follows) {
  for (unsigned i = first; i <= last; ++i) map[i] = static_cast<std::uint8_t>(follows);
}

constexpr Map OneByteMap() {
  Map map{};
  for (unsigned i = 0; i < 0x40; i += 8) {
    Fill(map, i, i + 3, kModrm);
    map[i + 4] = kByte;
    map[i + 5] = kOperand;
    Fill(map, i + 6, i + 7, kInvalid);
  }
  Fill(map, 0x60, 0x62, kInvalid);
  map[0x63] = kModrm;
  map[0x68] = kOperand;
  map[0x69] = kModrm | kOperand;
  map[0x6A] = kByte;
  map[0x6B] = kModrm | kByte;
  Fill(map, 0x70, 0x7F, kByte);
  Fill(map, 0x80, 0x83, kModrm | kByte);
  map[0x81] = kModrm | kOperand;
  map[0x82] = kInvalid;
  Fill(map, 0x84, 0x8F, kModrm);
  map[0x9A] = kInvalid;
  Fill(map, 0xA0, 0xA3, kAddress);
  map[0xA8] = kByte;
  map[0xA9] = kOperand;
  Fill(map, 0xB0, 0xB7, kByte);
  Fill(map, 0xB8, 0xBF, kFullOperand);
  Fill(map, 0xC0, 0xC1, kModrm | kByte);
  map[0xC2] = kWord;
  map[0xC6] = kModrm | kByte;
  map[0xC7] = kModrm | kOperand;
  map[0xC8] = kWord | kByte;
  map[0xCA] = kWord;
  map[0xCD] = kByte;
  map[0xCE] = kInvalid;
  Fill(map, 0xD0, 0xD3, kModrm);
  Fill(map, 0xD4, 0xD6, kInvalid);
  Fill(map, 0xD8, 0xDF, kModrm);
  Fill(map, 0xE0, 0xE7, kByte);
  Fill(map, 0xE8, 0xE9, kOperand);
  map[0xEA] = kInvalid;
  map[0xEB] = kByte;
  map[0xF6] = kModrm | kTest | kByte;
  map[0xF7] = kModrm | kTest | kOperand;
  Fill(map, 0xFE, 0xFF, kModrm);
  return map;
}

// Behind 0F, and what vector prefixes say is behind it.
constexpr Map TwoByteMap() {
  Map map{};
  Fill(map, 0x00, 0xFF, kModrm);
  for (const unsigned plain :
       {0x05, 0x06, 0x07, 0x08, 0x09, 0x0B, 0x0E, 0x77, 0xA0, 0xA1, 0xA2, 0xA8, 0xA9, 0xAA})
    map[plain] = kNone;
  Fill(map, 0x30, 0x37, kNone);
  Fill(map, 0xC8, 0xCF, kNone);
  for (const unsigned with_byte :
       {0x0F, 0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6})
    map[with_byte] |= kByte;
  Fill(map, 0x80, 0x8F, kOperand);
  for (const unsigned none : {0x04, 0x0A, 0x0C}) map[none] = kInvalid;
  return map;
}

constexpr Map kOneByteMap = OneByteMap();
constexpr Map kTwoByteMap = TwoByteMap();

class Length {
 public:
  // kReadBytes of code.
  explicit Length(const std::uint8_t* code) : code_(code) {}

  std::size_t Find() {
    SkipPrefixes();
    const std::uint8_t follows = Opcode();
    const std::uint8_t modrm = code_[at_];
    if ((follows & kModrm) != 0) SkipModrm();
    // Most end here.
    if ((follows & ~unsigned{kModrm}) == 0) return at_;
    if ((follows & kInvalid) != 0) return 0;
    if ((follows & kTest) != 0 && (modrm >> 3 & 7) > 1) return at_;
    const std::size_t operand = is_short_ && !is_long_ ? 2 : 4;
    at_ += (follows & kByte) + (follows & kWord);
    if ((follows & kOperand) != 0) at_ += operand;
    if ((follows & kFullOperand) != 0) at_ += is_long_ ? 8 : operand;
    if ((follows & kAddress) != 0) at_ += has_short_address_ ? 4 : 8;
    return at_;
  }

 private:
  void SkipPrefixes() {
    for (; IsInstructionPrefix(code_[at_]) && at_ < kMaxBytes; ++at_) {
      is_short_ |= code_[at_] == 0x66;
      has_short_address_ |= code_[at_] == 0x67;
    }
    if ((code_[at_] & 0xF0) == 0x40) is_long_ = (code_[at_++] & 8) != 0;
  }

  // Goes behind the opcode; returns what follows.
  std::uint8_t Opcode() {
    const std::uint8_t first = code_[at_++];
    if (first == 0xC5) return Vector(1, 1);
    if (first == 0xC4) return Vector(code_[at_] & 0x1F, 2);
    if (first == 0x62) return Vector(code_[at_] & 7, 3);
    if (IsXopPrefix(first, code_[at_])) return Xop(code_[at_] & 0x1F);
    is_short_ = is_short_ && (first & 0xFE) != 0xE8;  // calls and jumps ignore the prefix
    if (first != 0x0F) return kOneByteMap[first];
    const std::uint8_t second = code_[at_++];
    if (second == 0x38 || second == 0x3A) {
      ++at_;
      return second == 0x38 ? kModrm : kModrm | kByte;
    }
    const bool has_short_jump = second >= 0x80 && second <= 0x8F;
    is_short_ = is_short_ && !has_short_jump;  // in 64-bit mode they are long whatever the prefix
    return kTwoByteMap[second];
  }

  // Behind a vector prefix of so many bytes more.
  std::uint8_t Vector(unsigned map, std::size_t prefix_bytes) {
    at_ += prefix_bytes;
    const std::uint8_t opcode = code_[at_++];
    if (map == 0) return kInvalid;
    if (map == 3) return kModrm | kByte;
    return map == 1 ? kTwoByteMap[opcode] : std::uint8_t{kModrm};
  }

  // The same of AMD's, behind two bytes more.
  std::uint8_t Xop(unsigned map) {
    at_ += 3;
    return map == 8 ? kModrm | kByte : map == 9 ? kModrm : map == 10 ? kModrm | kOperand : kInvalid;
  }

  void SkipModrm() {
    const std::uint8_t modrm = code_[at_++];
    const unsigned mode = modrm >> 6;
    const unsigned base = modrm & 7;
    if (mode == 3) return;
    const bool has_index = base == 4;
    const bool has_no_base = mode == 0 && (has_index ? (code_[at_] & 7) == 5 : base == 5);
    at_ += has_index ? 1 : 0;
    if (mode == 1) at_ += 1;
    if (mode == 2 || has_no_base) at_ += 4;
  }

  const std::uint8_t* code_;
  std::size_t at_ = 0;
  bool is_short_ = false;
  bool is_long_ = false;
  bool has_short_address_ = false;
};

}  // namespace

std::size_t InstructionBytes(std::span<const std::uint8_t> code) {
  std::array<std::uint8_t, kReadBytes> last{};
  const bool is_last = code.size() < kReadBytes;
  if (is_last) std::copy(code.begin(), code.end(), last.begin());
  const std::size_t bytes = Length(is_last ? last.data() : code.data()).Find();
  return bytes <= std::min(code.size(), kMaxBytes) ? bytes : 0;
}

}  // namespace strobe::internal
