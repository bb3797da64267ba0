// KeptStacks: the stacks that StackTables keep by a number, because their captures lacked a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <unordered_map>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Collector only. See StackTable::AddPending. If Add throws std::bad_alloc, it can be repeated.
class KeptStacks {
 public:
  // Further stacks are not known.
  static constexpr std::size_t kMaxStacks = std::size_t{1} << 14;
  // A stack is forgotten if nothing has asked for it before so many calls of ForgetUnused.
  static constexpr std::uint8_t kMaxUnused = 2;

  struct Stack {
    std::vector<Address> leaf_first;
    StackEnd end{};
    std::uint8_t unused = 0;  // calls of ForgetUnused since the last Find
  };

  void Add(std::uint64_t number, std::span<const Address> leaf_first, StackEnd end) {
    if (stacks_.size() >= kMaxStacks) return;
    stacks_.insert_or_assign(number, Stack{{leaf_first.begin(), leaf_first.end()}, end});
  }
  // nullptr if it is not known. Valid until the next call of another function.
  const Stack* Find(std::uint64_t number) {
    const auto found = stacks_.find(number);
    if (found == stacks_.end()) return nullptr;
    found->second.unused = 0;
    return &found->second;
  }
  // Call it after each look at all that is kept.
  void ForgetUnused() {
    for (auto entry = stacks_.begin(); entry != stacks_.end();)
      entry = ++entry->second.unused > kMaxUnused ? stacks_.erase(entry) : std::next(entry);
  }

 private:
  std::unordered_map<std::uint64_t, Stack> stacks_;
};

}  // namespace internal
}  // namespace strobe
