// MatchEpilogue: recognizes the end of a Windows function for x64 in its machine code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "unwind_codes.h"

namespace strobe::internal {

// Nine registers may be popped; with the stack's release before and the return behind, and room for
// more.
inline constexpr std::size_t kMaxEpilogueInstructions = 24;

struct Epilogue {
  struct Step {
    std::size_t position = 0;  // of an instruction
    PdataFrame frame;          // before it runs
  };
  std::size_t count = 0;  // of steps
  std::array<Step, kMaxEpilogueInstructions> steps{};
  std::size_t end = 0;  // behind the last one
};

// The epilogue whose first instruction is at `begin`; nothing where there is none. It releases
// stack or pops a register, may pop more, and returns or jumps out of the function. All of that is
// sure to run once it has begun, so the frame before each step can be told exactly.
std::optional<Epilogue> MatchEpilogue(std::span<const std::uint8_t> function, std::size_t begin);

}  // namespace strobe::internal
