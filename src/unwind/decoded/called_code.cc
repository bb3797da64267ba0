#include "called_code.h"

#include <array>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

namespace strobe::internal {
namespace {

using Kind = FrameInstruction::Kind;

constexpr std::size_t kMaxInstructionBytes = 15;

}  // namespace

Address TargetOf(const FrameInstruction& instruction, Address at) {
  return at + instruction.bytes + static_cast<Address>(std::int64_t{instruction.offset});
}

const CalledCode::Function& CalledCode::At(Address begin) {
  const auto [known, is_new] = known_.try_emplace(begin);
  if (is_new) known->second = Follow(begin);
  return known->second;
}

RegisterSet CalledCode::WrittenByCall(const DecodedFrame& caller, std::optional<Address> target) {
  RegisterSet needed = 0;
  for (unsigned number = 0; number < kX86_64GeneralRegisters; ++number) {
    if (caller.places[number].base == FramePlace::kCfa) needed |= SetOf(number);
  }
  const bool is_needed = caller.sp().base != FramePlace::kCfa && (needed & kScratchRegisters) != 0;
  return kScratchRegisters & (is_needed && target ? WrittenBy(*target) : kAllRegisters);
}

CalledCode::Function CalledCode::Follow(Address begin) const {
  Function function{.written = 0, .returns = false};
  bool calls = false;
  std::unordered_set<Address> seen;
  std::vector<Address> waiting = {begin};
  while (!waiting.empty()) {
    Address at = waiting.back();
    waiting.pop_back();
    for (bool goes_on = true; goes_on && seen.insert(at).second;) {
      std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
      const std::size_t got = read_(at, bytes);
      const FrameInstruction instruction = DecodeFrameInstruction(std::span(bytes).first(got));
      function.written |= instruction.written;
      function.returns |= instruction.kind == Kind::kReturn;
      calls |= instruction.kind == Kind::kCall;
      const bool is_lost = instruction.kind == Kind::kInvalid ||
                           instruction.kind == Kind::kJumpThrough ||
                           (instruction.kind == Kind::kCall && !instruction.has_target);
      if (is_lost || seen.size() > kMaxInstructions) return {};
      const bool leads_on = instruction.kind == Kind::kCall || instruction.kind == Kind::kJump ||
                            instruction.kind == Kind::kBranch;
      if (leads_on) waiting.push_back(TargetOf(instruction, at));
      goes_on = instruction.kind != Kind::kJump && instruction.kind != Kind::kReturn &&
                instruction.kind != Kind::kEnd;
      at += instruction.bytes;
    }
  }
  function.returns &= !calls;
  return function;
}

}  // namespace strobe::internal
