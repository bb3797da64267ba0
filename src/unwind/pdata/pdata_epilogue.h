// MatchEpilogue: recognizes the end of a Windows function for x64 in its machine code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "unwind_codes.h"

namespace strobe::internal {

// A release of stack, nine pops and a return are eleven; with room for more.
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

// The epilogue whose first instruction is at `begin`; nothing if there is none. An epilogue
// releases stack or pops a register, may pop more, and returns or jumps out of the function. Once
// it has begun, all of it runs, so the frame before each step is known exactly.
std::optional<Epilogue> MatchEpilogue(std::span<const std::uint8_t> function, std::size_t begin);

}  // namespace strobe::internal
