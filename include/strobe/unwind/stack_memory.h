// StackMemory: the only way in which an unwinder reads memory. A live stack within its bounds, a
// copied slice, what a MemoryReader fetches, or ten words in a test.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/base/address.h"
#include "strobe/core/thread_info.h"

namespace strobe {

inline constexpr Address kUnknownStackEnd = ~Address{7};

// * ReadWord(address, word) reads the aligned 64-bit word there if it lies in valid stack;
//   otherwise false, and `word` is untouched.
// * end() is the first address above the valid stack; kUnknownStackEnd where that is not known.
// Both are signal-safe and cannot fault.
template <class M>
concept StackMemory = requires(const M& memory, Address address, Address& word) {
  { memory.ReadWord(address, word) }
  noexcept->std::same_as<bool>;
  { memory.end() }
  noexcept->std::same_as<Address>;
};

// The stack of the very thread that reads it: valid from `low` (the stack pointer, less the red
// zone) to the registered top.
class LiveStackMemory {
 public:
  LiveStackMemory(Address low, Address high) noexcept
      : end_(high & ~Address{7}), bytes_(low < end_ ? (end_ - low) & ~Address{7} : 0) {}

  // The bytes are read as the compiler's word loads; the sanitizers' shadow knows nothing of a
  // foreign frame's layout.
  [[nodiscard]]
#if defined(__clang__) || defined(__GNUC__)
  __attribute__((no_sanitize("address", "thread", "undefined")))
#endif
  bool
  ReadWord(Address address, Address& word) const noexcept {
    // Counted from the end, as the callers that verify a walk's words do: what they know of these
    // is then not asked again.
    const Address bytes = end_ - address;
    if ((bytes & 7) != 0 || bytes - sizeof(word) >= bytes_) return false;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is what a stack walk is
    word = *reinterpret_cast<const volatile Address*>(address);
    return true;
  }
  [[nodiscard]] Address end() const noexcept { return end_; }

 private:
  Address end_;
  Address bytes_;  // that can be read, up to the end
};
static_assert(StackMemory<LiveStackMemory>);

// A copy of a piece of a stack that began at `base` when it was taken.
class CopiedStackMemory {
 public:
  CopiedStackMemory(Address base, std::span<const std::byte> bytes) noexcept
      : CopiedStackMemory(base, bytes,
                          std::min<std::size_t>(-base % sizeof(Address), bytes.size())) {}

  [[nodiscard]] bool ReadWord(Address address, Address& word) const noexcept {
    const Address offset = address - base_;
    // An offset that is no multiple of a word's size is rotated to more than any number of words.
    if (std::rotr(offset, 3) >= word_count_) return false;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    std::memcpy(&word, reinterpret_cast<const std::byte*>(address + distance_), sizeof(word));
    return true;
  }
  [[nodiscard]] Address end() const noexcept { return base_ + word_count_ * sizeof(Address); }

 private:
  // Without the bytes in front of the first aligned word.
  CopiedStackMemory(Address base, std::span<const std::byte> bytes, std::size_t skipped) noexcept
      : base_(base + skipped),
        distance_(reinterpret_cast<Address>(bytes.data()) - base),
        word_count_((bytes.size() - skipped) / sizeof(Address)) {}

  Address base_;
  Address
      // From where the words were to where they are: a walk's next load waits for one addition
      // less.
      distance_;
  std::size_t word_count_;
};
static_assert(StackMemory<CopiedStackMemory>);

}  // namespace strobe
