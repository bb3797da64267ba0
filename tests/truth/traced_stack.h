// TracedStack: a local copy of a traced program's stacks, kept current where instructions write.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "strobe/unwind/stack_memory.h"
#include "traced_process.h"

namespace strobe::testing {

// Models StackMemory over the program's main stack and any alternate one; what lies more than a red
// zone below sp is not there.
class TracedStack {
 public:
  explicit TracedStack(const TracedProcess& process) : process_(process) {}

  // Forgets all; the main stack ends at `high`.
  void Reset(Address high) { stacks_ = {{.low = high, .high = high, .bytes = {}}}; }

  // An alternate stack came into use.
  void AddStack(Address high) {
    if (std::none_of(stacks_.begin(), stacks_.end(),
                     [&](const Stack& stack) { return stack.high == high; })) {
      stacks_.push_back({.low = high, .high = high, .bytes = {}});
    }
  }

  // Reads what an instruction has probably written: a little around the stack pointer.
  void RefreshAround(Address sp) {
    constexpr Address kWindowBytes = 512;
    Read(sp - kRedZoneBytes, sp + kWindowBytes);
  }

  // Reads all of the stack that sp is on.
  void RefreshAll(Address sp) { Read(sp - kRedZoneBytes, ~Address{0}); }

  [[nodiscard]] bool ReadWord(Address address, Address& word) const noexcept {
    if ((address & 7) != 0) return false;
    for (const Stack& stack : stacks_) {
      if (address < stack.low || address >= stack.high) continue;
      std::memcpy(&word, stack.bytes.data() + (stack.bytes.size() - (stack.high - address)),
                  sizeof(word));
      return true;
    }
    return false;
  }
  [[nodiscard]] Address end() const noexcept { return stacks_.front().high; }

 private:
  static constexpr Address kRedZoneBytes = 128;
  static constexpr Address kMaxStackBytes = Address{8} << 20;
  // bytes ends at `high`; what is valid of it begins at `low`.
  struct Stack {
    Address low = 0;
    Address high = 0;
    std::vector<std::uint8_t> bytes;
  };

  void Read(Address begin, Address end) {
    begin &= ~Address{7};
    // Of stacks that hold the address, the one that ends first: an alternate stack may be part of
    // the main one.
    Stack* stack = nullptr;
    for (Stack& candidate : stacks_) {
      const bool holds = begin < candidate.high && candidate.high - begin <= kMaxStackBytes;
      if (holds && (stack == nullptr || candidate.high < stack->high)) stack = &candidate;
    }
    if (stack == nullptr) return;
    end = std::min(end & ~Address{7}, stack->high);
    if (stack->high - begin > stack->bytes.size()) {
      std::vector<std::uint8_t> larger(static_cast<std::size_t>(stack->high - begin) * 2);
      std::copy_backward(stack->bytes.begin(), stack->bytes.end(), larger.end());
      stack->bytes = std::move(larger);
      end = stack->high;
    }
    process_.Read(begin,
                  std::span(stack->bytes)
                      .subspan(stack->bytes.size() - static_cast<std::size_t>(stack->high - begin),
                               static_cast<std::size_t>(end - begin)));
    stack->low = begin;
  }

  const TracedProcess& process_;
  std::vector<Stack> stacks_;
};
static_assert(StackMemory<TracedStack>);

}  // namespace strobe::testing
