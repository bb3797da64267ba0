// FakeStack: a stack of a few literal words, for tests of unwinders.
//
//   // [0x7000] = 0x7010, [0x7008] = 0x401234, ...
//   FakeStack stack(0x7000, {0x7010, 0x401234, 0, 0});
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/unwind/stack_memory.h"

namespace strobe::testing {

// Models StackMemory. Only aligned words within the stack can be read.
class FakeStack {
 public:
  // `base` is the address of words[0], a multiple of 8.
  FakeStack(Address base, std::vector<Address> words) : base_(base), words_(std::move(words)) {}

  [[nodiscard]] bool ReadWord(Address address, Address& word) const noexcept {
    const Address offset = address - base_;
    if (address < base_ || offset % sizeof(Address) != 0 ||
        offset / sizeof(Address) >= words_.size())
      return false;
    word = words_[offset / sizeof(Address)];
    return true;
  }
  [[nodiscard]] Address end() const noexcept { return base_ + words_.size() * sizeof(Address); }

  [[nodiscard]] Address base() const noexcept { return base_; }
  [[nodiscard]] std::vector<Address>& words() noexcept { return words_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::as_bytes(std::span(words_));
  }

 private:
  Address base_;
  std::vector<Address> words_;
};
static_assert(StackMemory<FakeStack>);

}  // namespace strobe::testing
