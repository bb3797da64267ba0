// UnwindRule: how to step from a frame to its caller, in 32 bits. A module's .eh_frame is compiled
// into a dictionary of rules: about a hundred distinct rules serve a whole library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/base/address.h"

namespace strobe {

// The common rules, each with its equation. Words are 8 bytes; cfa, fp and ra are the three counts
// that the rule holds.
//   kFromSp:  CFA = sp + 8 * cfa         kFromFp:  CFA = fp + 8 * cfa
//   (sp, pc, fp) = (CFA, ra == 0 ? lr : [CFA - 8 * ra], fp == 0 ? fp : [CFA - 8 * fp])
//   kStop:    the outermost frame: there is no caller
//   kSpecial: see SpecialRule; number 0 means that the code is unknown
class UnwindRule {
 public:
  enum class Kind : std::uint8_t { kSpecial = 0, kStop = 1, kFromSp = 2, kFromFp = 3 };
  static constexpr std::uint32_t kMaxCfaWords = (1u << 13) - 1;
  static constexpr std::uint32_t kMaxSlotWords = (1u << 8) - 1;

  constexpr UnwindRule() = default;  // unknown
  // No two registers are saved in one word: `fp_words` differs from `ra_words`, unless both are 0.
  // If calls push the return address, `ra_words` is 1.
  static constexpr UnwindRule Frame(Kind kind, std::uint32_t cfa_words, std::uint32_t ra_words,
                                    std::uint32_t fp_words) {
    return UnwindRule(static_cast<std::uint32_t>(kind) | cfa_words << 2 |
                      (fp_words != 0 ? fp_words : ra_words) << 15 | ra_words << 23);
  }
  static constexpr UnwindRule Special(std::uint32_t number) {
    return UnwindRule(static_cast<std::uint32_t>(Kind::kSpecial) | number << 2);
  }
  static constexpr UnwindRule Stop() { return UnwindRule(static_cast<std::uint32_t>(Kind::kStop)); }
  static constexpr UnwindRule Unknown() { return Special(0); }

  [[nodiscard]] constexpr Kind kind() const { return static_cast<Kind>(bits_ & 3); }
  // True for kFromSp and kFromFp. If so, is_from_fp() tells kFromFp from kFromSp.
  [[nodiscard]] constexpr bool is_frame() const { return (bits_ & 2) != 0; }
  [[nodiscard]] constexpr bool is_from_fp() const { return (bits_ & 1) != 0; }
  [[nodiscard]] constexpr Address cfa_bytes() const {
    return Address{bits_ & kMaxCfaWords << 2} * 2;
  }
  [[nodiscard]] constexpr std::uint32_t cfa_words() const { return bits_ >> 2 & kMaxCfaWords; }
  [[nodiscard]] constexpr std::uint32_t fp_words() const {
    return fp_slot_words() != ra_words() ? fp_slot_words() : 0;
  }
  // The same for a walk that does not branch: the word to read in any case. If fp is not saved, it
  // is the word of the return address.
  [[nodiscard]] constexpr std::uint32_t fp_slot_words() const {
    return bits_ >> 15 & kMaxSlotWords;
  }
  [[nodiscard]] constexpr std::uint32_t ra_words() const {
    return bits_ >> 23;
  }  // the highest bit is 0
  [[nodiscard]] constexpr std::uint32_t special_number() const { return bits_ >> 2; }
  [[nodiscard]] constexpr std::uint32_t bits() const { return bits_; }
  static constexpr UnwindRule FromBits(std::uint32_t bits) { return UnwindRule(bits); }

  friend constexpr bool operator==(UnwindRule, UnwindRule) = default;

 private:
  constexpr explicit UnwindRule(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};
static_assert(sizeof(UnwindRule) == 4);

// A rule that does not fit into an UnwindRule: a few rows in a library.
struct SpecialRule {
  // The register that an offset counts from. The walk recovers these three for every frame,
  // the special register where a rule asks for it (see SavedRegister), and any other only for the
  // innermost. kKept is such another at a call of code that leaves it alone, with all that it
  // calls: it holds what it held at the call, wherever in that code the walk begins, unless a
  // signal's handler runs there.
  enum class Base : std::uint8_t { kSp, kFp, kCfa, kOther, kKept };
  // Where a value comes from.
  enum class Where : std::uint8_t {
    kUnchanged,  // the register keeps it (the link register, for the return address)
    kMemory,     // [base + offset]
    kRegister,   // base itself
    kUndefined,  // the value is lost; for the return address: the stack ends here
  };
  struct Location {
    Where where = Where::kUnchanged;
    Base base = Base::kCfa;
    std::uint8_t other = 0;  // DWARF's number of the register, for Base::kOther and kKept
    std::int32_t offset = 0;
    friend bool operator==(const Location&, const Location&) = default;
  };

  // CFA = base + offset, or [base + offset] for kMemory. kExpression: what `expression` says.
  // kLost: the frame information says something that no rule holds, so no walk may leave the frame.
  enum class Cfa : std::uint8_t { kUnknown, kOffset, kMemory, kExpression, kLost };
  // An expression of DWARF's: see ExpressionEvaluator. OpenSSL's longest has 11 bytes. So has that
  // of procedure linkage tables on x86-64: sp + 8 + ((pc & 15) >= 11) << 3.
  struct Expression {
    static constexpr std::size_t kMaxBytes = 31;
    std::uint8_t size = 0;
    std::array<std::uint8_t, kMaxBytes> bytes{};

    [[nodiscard]] std::span<const std::uint8_t> view() const {
      return std::span(bytes).first(size);
    }
    friend bool operator==(const Expression&, const Expression&) = default;
  };
  Cfa cfa = Cfa::kUnknown;
  Base cfa_base = Base::kSp;
  std::uint8_t cfa_other = 0;
  std::int32_t cfa_offset = 0;
  Location ra;
  Location fp;
  // For a signal's frame on a CPU with a link register: the interrupted function may be a leaf,
  // whose return address is still in that register.
  Location lr{};
  // The kernel pushed this frame for a signal: the caller's pc is the interrupted instruction, and
  // its sp may be any address.
  bool is_signal_frame = false;
  Expression expression{};

  friend bool operator==(const SpecialRule&, const SpecialRule&) = default;
};

}  // namespace strobe
