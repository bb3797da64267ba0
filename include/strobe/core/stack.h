// The terms of a captured stack: where a walk stops, why it ends, and pseudo-frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strobe/base/address.h"

namespace strobe {

// Why a walk ended. A stack with kComplete or kCoroutine is whole; every other stack ends early.
// The profile marks all ends but kComplete. Each end is counted.
enum class StackEnd : std::uint8_t {
  kComplete = 0,  // the outermost frame of the thread's stack was reached
  kTruncated,     // the limit on frames, or on the copy of a stack, was reached
  // The next frame would lie outside the thread's stack, not above this one, or not aligned.
  kBroken,
  kNoUnwindInfo,  // the last frame reached has no unwind information
  kCoroutine,     // the outermost frame of another stack than the thread's was reached
};
inline constexpr std::size_t kStackEndCount = 5;

constexpr std::string_view StackEndName(StackEnd end) {
  switch (end) {
    case StackEnd::kComplete: return "complete";
    case StackEnd::kTruncated: return "truncated";
    case StackEnd::kBroken: return "broken";
    case StackEnd::kNoUnwindInfo: return "no unwind info";
    case StackEnd::kCoroutine: return "coroutine";
  }
  return "unknown";
}

// True if a stack with that end is whole.
constexpr bool IsWhole(StackEnd end) {
  return end == StackEnd::kComplete || end == StackEnd::kCoroutine;
}

// How many of a stack's `count` frames are left out, if a sample leaves out its `skip` leaf frames.
// A whole stack keeps its root frame. Of one that ends early nothing may be left: frames of a hook
// are never shown.
constexpr std::size_t SkippedFrames(std::uint64_t skip, std::size_t count, StackEnd end) {
  const std::size_t most = IsWhole(end) && count > 0 ? count - 1 : count;
  return skip < most ? static_cast<std::size_t>(skip) : most;
}

// Frames that are not code. They mark stacks that end early or in a coroutine, and hold weight that
// has no stack.
enum class PseudoFrame : std::uint8_t {
  kTruncated = 0,  // [truncated]: root of a stack longer than the limits
  kBroken,         // [broken stack]: root of a stack whose chain of frames broke
  kNoUnwindInfo,   // [no unwind info]: root of a stack that ends at a frame without a table
  kLost,           // [lost]: weight of samples that no record could be written for
  kResidual,       // [residual]: the part of a period at a thread's end; signed
  kOverflow,       // [overflow]: stacks beyond the aggregator's memory limit
  kCoroutine,      // [coroutine]: root of a coroutine's stack, which is whole
};
inline constexpr std::size_t kPseudoFrameCount = 7;

// The frame's name in a profile, brackets included.
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

// The largest value of the option sampling.max_frames.
inline constexpr std::size_t kMaxFramesLimit = 2048;

// The registers of a frame, from which a walk can continue.
struct FrameStop {
  Address pc = 0;
  Address sp = 0;
  Address fp = 0;
  Address lr = 0;  // the link register, if the CPU has one
  // True if pc is the interrupted instruction. False if pc is a return address, which lies behind
  // the call.
  bool is_exact = true;
};

// The result of a walk. `frames[0, count)` of the output are leaf first. The first is the exact pc.
// Every other frame is the return address minus one, which lies inside the call instruction; but
// the caller of a signal's frame is the exact interrupted pc. So each address can be looked up
// unchanged.
struct WalkResult {
  std::size_t count = 0;
  StackEnd end = StackEnd::kComplete;
  // Frames towards the root that are not in the output, because they equal the last frames of the
  // thread's previous walk. Always 0 for a walk without a memo.
  std::size_t shared = 0;
  // True if `end` is kNoUnwindInfo only because the table of the last frame's code has not been
  // built yet. With the table, the walk can continue from `stop`, which is that frame.
  bool is_pending = false;
  // If is_pending, the last frame. After a kComplete walk that shares nothing, its outermost frame
  // or all zero.
  FrameStop stop{};
};

}  // namespace strobe
