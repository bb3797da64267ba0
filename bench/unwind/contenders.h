// All that walk stacks, behind one call.
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

// Frames that were written, and those that follow because they were the last ones of the walk
// before.
struct Found {
  std::size_t count = 0;
  std::size_t shared = 0;
  [[nodiscard]] std::size_t frames() const { return count + shared; }
};

class Walker {
 public:
  virtual ~Walker() = default;
  // Writes addresses, leaf first: of the very instruction for the first and of the call, or just
  // behind it, for the others; returns how many. Those that walk from where they are called put
  // frames of their own before the leaf's.
  virtual Found Walk(const NativeRegisters& leaf, Trace& trace) = 0;
};

struct Contender {
  std::string name;
  FunctionKind kind = FunctionKind::kPlain;  // of the stack that it can walk
  std::unique_ptr<Walker> walker;
};

// For the calling thread, whose stack that is. Ours come first: the default, which remembers its
// last walk, then the same without a memory. Names on stderr those that are missing.
std::vector<Contender> MakeContenders(const StackBounds& stack);
// Does nothing: what the clock and the call cost.
std::unique_ptr<Walker> MakeNoWalker();

}  // namespace strobe::testing
