// The expressions of call frame information (DWARF 5, section 2.5), as far as frames need them:
// registers, memory and arithmetic. There are no jumps, so an evaluation ends with its bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Operations, by their codes (section 7.7.1).
enum DwarfOperation : std::uint8_t {
  kOpDeref = 0x06,
  kOpConst1u = 0x08,
  kOpConst1s = 0x09,
  kOpConst2u = 0x0A,
  kOpConst2s = 0x0B,
  kOpConst4u = 0x0C,
  kOpConst4s = 0x0D,
  kOpConst8u = 0x0E,
  kOpConst8s = 0x0F,
  kOpConstu = 0x10,
  kOpConsts = 0x11,
  kOpDup = 0x12,
  kOpDrop = 0x13,
  kOpOver = 0x14,
  kOpSwap = 0x16,
  kOpAnd = 0x1A,
  kOpMinus = 0x1C,
  kOpMul = 0x1E,
  kOpNeg = 0x1F,
  kOpNot = 0x20,
  kOpOr = 0x21,
  kOpPlus = 0x22,
  kOpPlusUconst = 0x23,
  kOpShl = 0x24,
  kOpShr = 0x25,
  kOpShra = 0x26,
  kOpXor = 0x27,
  kOpEq = 0x29,
  kOpGe = 0x2A,
  kOpGt = 0x2B,
  kOpLe = 0x2C,
  kOpLt = 0x2D,
  kOpNe = 0x2E,
  kOpLit0 = 0x30,   // to lit31
  kOpBreg0 = 0x70,  // to breg31
  kOpBregx = 0x92,
  kOpNop = 0x96,
};

// Why an expression has no value.
enum class ExpressionEnd : std::uint8_t {
  kValue,
  kNoRegister,  // the value of a register is not known
  kNoMemory,    // memory that it needs cannot be read
  kMalformed,   // an operation that is not known, or operands that are not there
};

// Evaluates an expression. `Machine` has two functions, both signal-safe: Register(number, value)
// and Word(address, value). Each sets `value`, and returns false if there is none.
template <class Machine>
class ExpressionEvaluator {
 public:
  ExpressionEvaluator(std::span<const std::uint8_t> expression, const Machine& machine) noexcept
      : bytes_(expression), machine_(machine) {}

  STROBE_SIGNAL_SAFE ExpressionEnd Run(Address& value) noexcept {
    while (end_ == ExpressionEnd::kValue && !bytes_.empty()) Execute(Next());
    if (end_ == ExpressionEnd::kValue) value = Pop();
    return end_;
  }

 private:
  // Real expressions need three places. A signal's handler has these on its stack.
  static constexpr std::size_t kMaxDepth = 4;

  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void Execute(std::uint8_t operation) noexcept {
    if (operation >= kOpLit0 && operation < kOpLit0 + 32) {
      Push(operation - kOpLit0);
    } else if (operation >= kOpBreg0 && operation < kOpBreg0 + 32) {
      PushRegister(operation - kOpBreg0);
    } else if (operation >= kOpAnd && operation <= kOpNe && operation != kOpNeg &&
               operation != kOpNot && operation != kOpPlusUconst) {
      const Address top = Pop();
      Push(Combined(operation, Pop(), top));
    } else if (operation >= kOpConst1u && operation <= kOpConsts) {
      PushConstant(operation);
    } else {
      ExecuteOther(operation);
    }
  }

  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void ExecuteOther(std::uint8_t operation) noexcept {
    switch (operation) {
      case kOpNop: return;
      case kOpBregx: return PushRegister(Uleb());
      case kOpPlusUconst: return Push(Pop() + Uleb());
      case kOpNeg: return Push(Address{0} - Pop());
      case kOpNot: return Push(~Pop());
      case kOpDrop: static_cast<void>(Pop()); return;
      case kOpDup: return Push(Peek(1));
      case kOpOver: return Push(Peek(2));
      case kOpSwap: {
        const Address top = Pop();
        const Address second = Pop();
        Push(top);
        return Push(second);
      }
      case kOpDeref: {
        Address word = 0;
        if (!machine_.Word(Pop(), word)) Fail(ExpressionEnd::kNoMemory);
        return Push(word);
      }
      default: Fail(ExpressionEnd::kMalformed);
    }
  }

  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE Address Combined(std::uint8_t operation, Address left,
                                                           Address right) noexcept {
    const auto a = static_cast<std::int64_t>(left);
    const auto b = static_cast<std::int64_t>(right);
    switch (operation) {
      case kOpAnd: return left & right;
      case kOpMinus: return left - right;
      case kOpMul: return left * right;
      case kOpOr: return left | right;
      case kOpPlus: return left + right;
      case kOpShl: return right < 64 ? left << right : 0;
      case kOpShr: return right < 64 ? left >> right : 0;
      case kOpShra: return static_cast<Address>(a >> (right < 64 ? right : 63));
      case kOpXor: return left ^ right;
      case kOpEq: return a == b ? 1 : 0;
      case kOpGe: return a >= b ? 1 : 0;
      case kOpGt: return a > b ? 1 : 0;
      case kOpLe: return a <= b ? 1 : 0;
      case kOpLt: return a < b ? 1 : 0;
      case kOpNe: return a != b ? 1 : 0;
      default: Fail(ExpressionEnd::kMalformed); return 0;
    }
  }

  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE void PushConstant(std::uint8_t operation) noexcept {
    switch (operation) {
      case kOpConst1u: return Push(Fixed<std::uint8_t>());
      case kOpConst1s: return Push(static_cast<Address>(std::int64_t{Fixed<std::int8_t>()}));
      case kOpConst2u: return Push(Fixed<std::uint16_t>());
      case kOpConst2s: return Push(static_cast<Address>(std::int64_t{Fixed<std::int16_t>()}));
      case kOpConst4u: return Push(Fixed<std::uint32_t>());
      case kOpConst4s: return Push(static_cast<Address>(std::int64_t{Fixed<std::int32_t>()}));
      case kOpConstu: return Push(Uleb());
      case kOpConsts: return Push(Sleb());
      default: return Push(Fixed<std::uint64_t>());
    }
  }

  STROBE_SIGNAL_SAFE void PushRegister(std::uint64_t number) noexcept {
    const Address offset = Sleb();
    Address value = 0;
    if (number >= 32) return Fail(ExpressionEnd::kMalformed);
    if (!machine_.Register(static_cast<unsigned>(number), value)) Fail(ExpressionEnd::kNoRegister);
    Push(value + offset);
  }

  STROBE_SIGNAL_SAFE void Push(Address value) noexcept {
    if (depth_ == kMaxDepth) return Fail(ExpressionEnd::kMalformed);
    stack_[depth_++] = value;
  }
  STROBE_SIGNAL_SAFE Address Pop() noexcept {
    const Address value = Peek(1);
    if (depth_ != 0) --depth_;
    return value;
  }
  // The value in that place from the top on, which is 1.
  STROBE_SIGNAL_SAFE Address Peek(std::size_t place) noexcept {
    if (depth_ >= place) return stack_[depth_ - place];
    Fail(ExpressionEnd::kMalformed);
    return 0;
  }

  STROBE_SIGNAL_SAFE std::uint8_t Next() noexcept { return Fixed<std::uint8_t>(); }
  template <class T>
  STROBE_SIGNAL_SAFE T Fixed() noexcept {
    T value{};
    if (bytes_.size() < sizeof(T)) {
      Fail(ExpressionEnd::kMalformed);
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    // subspan is a function of its own where the library's assertions are on.
    bytes_ = {bytes_.data() + sizeof(T), bytes_.size() - sizeof(T)};
    return value;
  }
  STROBE_SIGNAL_SAFE Address Uleb() noexcept { return Leb(false); }
  STROBE_SIGNAL_SAFE Address Sleb() noexcept { return Leb(true); }
  STROBE_SIGNAL_SAFE Address Leb(bool is_signed) noexcept {
    Address value = 0;
    for (unsigned shift = 0; end_ == ExpressionEnd::kValue;) {
      const std::uint8_t byte = Next();
      if (shift < 64) value |= Address{byte & 0x7FU} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (is_signed && shift < 64 && (byte & 0x40) != 0) value |= ~Address{0} << shift;
      break;
    }
    return value;
  }

  // The first reason counts.
  STROBE_SIGNAL_SAFE void Fail(ExpressionEnd reason) noexcept {
    if (end_ == ExpressionEnd::kValue) end_ = reason;
  }

  std::span<const std::uint8_t> bytes_;  // those that are left
  const Machine& machine_;
  std::array<Address, kMaxDepth> stack_{};
  std::uint8_t depth_ = 0;
  ExpressionEnd end_ = ExpressionEnd::kValue;
};

// Whether an expression has a value wherever the registers and the memory that it asks for have.
inline bool IsEvaluable(std::span<const std::uint8_t> expression) noexcept {
  struct AnyMachine {
    static bool Register(unsigned /*number*/, Address& /*value*/) { return true; }
    static bool Word(Address /*address*/, Address& /*value*/) { return true; }
  };
  Address value = 0;
  const AnyMachine machine;
  return ExpressionEvaluator(expression, machine).Run(value) == ExpressionEnd::kValue;
}

}  // namespace internal
}  // namespace strobe
