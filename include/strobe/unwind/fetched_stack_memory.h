// FetchedStackMemory: stacks whose bounds are not known, a coroutine's or an alternate one, read by
// calls that cannot fault.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/thread_info.h"
#include "strobe/unwind/stack_memory.h"

namespace strobe {

// ReadStack(address, bytes) copies the calling thread's memory; returns how many bytes could be
// read, from the front. It never faults, whatever is there. Signal-safe.
template <class S>
concept StackSource = requires(std::uint64_t address, std::span<std::byte> bytes) {
  { S::ReadStack(address, bytes) }
  noexcept->std::same_as<std::size_t>;
};

// A walk that begins off its thread's own stack: each piece of memory that it comes to is copied
// into `room` as it is needed, so that it may also lead from one stack to another, as a signal's
// frame does. Of these the thread's own, `own`, is then read in place, for all that lies above a
// page of it that could be read can be read, too: however deep it is, it costs no more copies.
template <StackSource Source>
class FetchedStackMemory {
 public:
  // Copies of one walk; what lies beyond them cannot be read. With a WalkMemo's room, 24 KiB each.
  static constexpr int kMaxFetches = 8;

  FetchedStackMemory(StackBounds own, std::span<std::byte> room) noexcept
      : own_(own), room_(room) {}

  STROBE_SIGNAL_SAFE bool ReadWord(Address address, Address& word) const noexcept {
    if (Copy().ReadWord(address, word) || Live().ReadWord(address, word)) return true;
    return (address & 7) == 0 && Fetch(address) && Copy().ReadWord(address, word);
  }
  // Where these stacks end is not known.
  [[nodiscard]] Address end() const noexcept { return ~Address{7}; }

 private:
  // The smallest page of any system.
  static constexpr Address kPageBytes = 4096;

  STROBE_SIGNAL_SAFE bool Fetch(Address address) const noexcept {
    if (fetches_ == kMaxFetches) return false;
    ++fetches_;
    copy_base_ = address & ~(kPageBytes - 1);
    copied_bytes_ = std::min(Source::ReadStack(copy_base_, room_), room_.size());
    if (own_.Holds(address) && copied_bytes_ > address - copy_base_)
      live_base_ = std::max<Address>(copy_base_, own_.low);
    return true;
  }
  [[nodiscard]] CopiedStackMemory Copy() const noexcept {
    return {copy_base_, room_.first(copied_bytes_)};
  }
  [[nodiscard]] LiveStackMemory Live() const noexcept { return {live_base_, own_.high}; }

  const StackBounds own_;
  const std::span<std::byte> room_;
  // What has been read so far: to read is to look, so it changes nothing for the walk.
  mutable Address copy_base_ = 0;
  mutable std::size_t copied_bytes_ = 0;
  mutable Address live_base_ = ~Address{0};
  mutable int fetches_ = 0;
};

STROBE_HIDDEN_BEGIN
namespace internal {
struct NoStackSource {
  static std::size_t ReadStack(std::uint64_t /*address*/, std::span<std::byte> /*bytes*/) noexcept {
    return 0;
  }
};
}  // namespace internal
STROBE_HIDDEN_END
static_assert(StackMemory<FetchedStackMemory<internal::NoStackSource>>);

}  // namespace strobe
