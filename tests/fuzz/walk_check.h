// CheckedWalk: what holds for every walk, whatever the tables, the registers and the stack say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strobe/core/stack.h"
#include "strobe/unwind/stack_memory.h"
#include "support/check.h"

namespace strobe::testing {

// Walks twice, into `limit` places and into fewer. The copies of the stack and of the output are
// exactly as long as they are said to be, so that AddressSanitizer sees every step outside.
template <class Unwinder, class Registers>
void CheckedWalk(const Unwinder& unwinder, const Registers& registers, Address base,
                 std::span<const std::uint8_t> stack, std::size_t limit) {
  const std::vector<std::uint8_t> copy(stack.begin(), stack.end());
  const CopiedStackMemory memory(base, std::as_bytes(std::span(copy)));
  std::vector<Address> all(limit);
  const WalkResult whole = unwinder.Unwind(registers, memory, std::span(all));
  testing::Check(whole.count <= limit, "more frames than places");
  testing::Check(static_cast<std::size_t>(whole.end) < kStackEndCount, "an end that has no name");
  testing::Check(limit == 0 || (whole.count >= 1 && all[0] == registers.pc),
                 "the first frame is not the pc");
  testing::Check(whole.end != StackEnd::kTruncated || whole.count == limit,
                 "cut short with places left");
  std::vector<Address> some(whole.count / 2);
  const WalkResult part = unwinder.Unwind(registers, memory, std::span(some));
  testing::Check(part.count == some.size(), "fewer frames than before");
  for (std::size_t i = 0; i < some.size(); ++i)
    testing::Check(some[i] == all[i], "other frames than before");
}

}  // namespace strobe::testing
