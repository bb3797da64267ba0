// FetchedStackMemory: reads stacks whose bounds are not known, a coroutine's or an alternate one,
// by calls that cannot fault.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/page.h"
#include "strobe/base/signal_safe.h"
#include "strobe/core/memory_reader.h"
#include "strobe/core/thread_info.h"
#include "strobe/unwind/stack_memory.h"

namespace strobe {

// The memory of a walk that begins off its thread's own stack. `kRead`, a function, copies the
// calling thread's memory into `room`, a part at a time, where the walk needs it. So a walk may
// lead from one stack to another, as a signal's frame does.
//
// The thread's own stack, `own`, is read in place once a page of it could be copied: everything
// above a readable page of a stack is readable. So a deep stack needs no more copies.
template <auto kRead>
requires SignalSafeMemoryReader<decltype(kRead)>
class FetchedStackMemory {
 public:
  // Copies of one walk. Memory that would need one more cannot be read. With a WalkMemo's room, a
  // copy has 24 KiB.
  static constexpr int kMaxFetches = 8;

  FetchedStackMemory(StackBounds own, std::span<std::uint8_t> room) noexcept
      : own_(own), room_(room) {}

  STROBE_SIGNAL_SAFE bool ReadWord(Address address, Address& word) const noexcept {
    if (Copy().ReadWord(address, word) || Live().ReadWord(address, word)) return true;
    return (address & 7) == 0 && Fetch(address) && Copy().ReadWord(address, word);
  }
  [[nodiscard]] Address end() const noexcept { return kUnknownStackEnd; }

 private:
  STROBE_SIGNAL_SAFE bool Fetch(Address address) const noexcept {
    if (fetches_ == kMaxFetches) return false;
    ++fetches_;
    copy_base_ = internal::PageOf(address);
    copied_bytes_ = std::min(kRead(copy_base_, room_), room_.size());
    if (own_.Holds(address) && copied_bytes_ > address - copy_base_)
      live_base_ = std::max<Address>(copy_base_, own_.low);
    return true;
  }
  [[nodiscard]] CopiedStackMemory Copy() const noexcept {
    return {copy_base_, std::as_bytes(room_.first(copied_bytes_))};
  }
  [[nodiscard]] LiveStackMemory Live() const noexcept { return {live_base_, own_.high}; }

  const StackBounds own_;
  const std::span<std::uint8_t> room_;
  // What has been copied so far. Mutable, because a read changes nothing that a walk can see.
  mutable Address copy_base_ = 0;
  mutable std::size_t copied_bytes_ = 0;
  mutable Address live_base_ = ~Address{0};
  mutable int fetches_ = 0;
};

static_assert(StackMemory<FetchedStackMemory<&ReadNothing>>);

}  // namespace strobe
