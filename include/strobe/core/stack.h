// The vocabulary of a captured stack: where it ends, why, and the pseudo-frames that stand for code
// that is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strobe/base/address.h"

namespace strobe {

// Why a walk ended. kComplete is the thread's first function, and kCoroutine that of another stack
// than the thread's; everything else is a stack that ends early. All but kComplete are marked in
// the profile, and each is counted.
enum class StackEnd : std::uint8_t {
  kComplete = 0,  // the outermost frame was reached
  kTruncated,     // the limit on frames was reached
  // The next frame would lie outside the thread's stack, not above this one, or not aligned.
  kBroken,
  kNoUnwindInfo,  // nothing says how to leave the innermost frame reached
  kCoroutine,     // the outermost frame of a stack that is not the thread's own was reached
};
inline constexpr std::size_t kStackEndCount = 5;

// Whether a stack with that end is whole.
constexpr bool IsWhole(StackEnd end) {
  return end == StackEnd::kComplete || end == StackEnd::kCoroutine;
}

// Frames that are no code: they keep a weight in the profile that no stack can be given for.
enum class PseudoFrame : std::uint8_t {
  kTruncated = 0,  // [truncated]: root of a stack longer than the limit on frames
  kBroken,         // [broken stack]: root of a stack whose chain of frames broke
  kNoUnwindInfo,   // [no unwind info]: root of a stack that could not be left for want of a table
  kLost,           // [lost]: weight of samples that no record could be written for
  kResidual,       // [residual]: the part of a period at a thread's end; signed
  kOverflow,       // [overflow]: stacks beyond the aggregator's memory limit
  kCoroutine,      // [coroutine]: root of a coroutine's stack, which is whole
};
inline constexpr std::size_t kPseudoFrameCount = 7;

// The name by which a profile shows it, brackets included.
constexpr std::string_view PseudoFrameName(PseudoFrame frame) {
  switch (frame) {
    case PseudoFrame::kTruncated: return "[truncated]";
    case PseudoFrame::kBroken: return "[broken stack]";
    case PseudoFrame::kNoUnwindInfo: return "[no unwind info]";
    case PseudoFrame::kLost: return "[lost]";
    case PseudoFrame::kResidual: return "[residual]";
    case PseudoFrame::kOverflow: return "[overflow]";
    case PseudoFrame::kCoroutine: return "[coroutine]";
  }
  return "[unknown]";
}

// The longest stack that any option may ask for.
inline constexpr std::size_t kMaxFramesLimit = 2048;

// A frame on the way of a walk: what it takes to go on from there.
struct FrameStop {
  Address pc = 0;
  Address sp = 0;
  Address fp = 0;
  Address lr = 0;  // the link register, if the CPU has one
  bool is_exact =
      true;  // whether pc is the very instruction and no return address, which lies behind the call
};

// What a walk wrote. `frames[0, count)` of the output are leaf first. The first is the exact pc;
// every other is the return address minus one, which lies inside the call instruction, except under
// a signal's frame, where it is the exact interrupted pc. So each address can be looked up as it
// is.
struct WalkResult {
  std::size_t count = 0;
  StackEnd end = StackEnd::kComplete;
  // Frames that follow, towards the root, which are not in the output because they are the last
  // ones of this thread's walk before. Always 0 of a walk that knows of no other.
  std::size_t shared = 0;
  // kNoUnwindInfo only because what is to be known of the last frame's code has not been built yet:
  // with that, the walk goes on from `stop`, which is that frame.
  bool is_pending = false;
  // Of a kComplete walk that shares nothing: its outermost frame, or all zero.
  FrameStop stop{};
};

}  // namespace strobe
