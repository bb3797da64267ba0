// Who walks stacks, all behind one call.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "path.h"
#include "strobe/core/thread_info.h"

namespace strobe::testing {

inline constexpr std::size_t kMaxFrames = 512;
using Trace = std::array<Address, kMaxFrames>;

class Walker {
 public:
  virtual ~Walker() = default;
  // Writes addresses, leaf first: of the very instruction for the first and of the call, or just behind it, for the others; returns how
  // many. Those that walk from where they are called put frames of their own before the leaf's.
  virtual std::size_t Walk(const NativeRegisters& leaf, Trace& trace) = 0;
};

struct Contender {
  std::string name;
  FunctionKind kind = FunctionKind::kPlain;  // of the stack that it can walk
  std::unique_ptr<Walker> walker;
};

// For the calling thread, whose stack that is. Ours come first. Says on stderr who is not there.
std::vector<Contender> MakeContenders(const StackBounds& stack);
// Does nothing: what the clock and the call cost.
std::unique_ptr<Walker> MakeNobody();

}  // namespace strobe::testing
