// What the tests of unwinders walk and what their walks give.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <ostream>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/core/stack.h"
#include "strobe/testing/fakes/fake_stack.h"
#include "strobe/unwind/unwinder.h"

namespace strobe::testing {

inline constexpr Address kBase = 0x7000;  // the lowest word of the stacks
inline constexpr Address kPc = 0x300000;  // in code that no table covers

struct Trace {
  std::vector<Address> frames;
  StackEnd end = StackEnd::kComplete;
  friend bool operator==(const Trace&, const Trace&) = default;
};

inline void PrintTo(const Trace& trace, std::ostream* os) {
  *os << "{" << std::hex;
  for (const Address frame : trace.frames) *os << frame << " ";
  *os << std::dec << ", end " << static_cast<int>(trace.end) << "}";
}

template <class AnyUnwinder, class Registers>
Trace TraceOf(const AnyUnwinder& unwinder, const Registers& registers, const FakeStack& stack,
              std::size_t limit = 16) {
  std::vector<Address> output(limit);
  const WalkResult result = unwinder.Unwind(registers, stack, output);
  output.resize(result.count);
  return {output, result.end};
}

}  // namespace strobe::testing
