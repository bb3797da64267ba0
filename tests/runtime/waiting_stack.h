// A waiting thread's stack, as the tests of walks from outside read it.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "manual_traits.h"
#include "strobe/core/thread_info.h"
#include "strobe/testing/fakes/manual_platform.h"
#include "strobe/unwind/frame_pointer_unwinder.h"

namespace strobe::internal {

// Its chain of frames begins at the frame pointer, which the system does not tell.
struct WaitTraits : testing::ManualTraits {
  using Unwinder = FramePointerUnwinder;
};

inline constexpr std::uint64_t kStackLow = 0x700000;
inline constexpr std::uint64_t kStackHigh = 0x710000;
inline constexpr StackBounds kWaitingStack{.low = kStackLow, .high = kStackHigh};
inline constexpr ThreadActivity kWait{
    .kind = ThreadActivity::Kind::kWaits, .pc = 0x401000, .sp = 0x70F000};
inline constexpr std::uint64_t kWaitFp = 0x70F100;

// Maps zeros from `begin` to `end` but for these words.
struct StackWord {
  std::uint64_t address;
  std::uint64_t value;
};
inline void MapStack(std::uint64_t begin, std::uint64_t end,
                     std::initializer_list<StackWord> words) {
  std::vector<std::uint8_t> bytes(end - begin);
  for (const StackWord& word : words)
    std::memcpy(&bytes[word.address - begin], &word.value, sizeof(word.value));
  testing::ManualPlatform::With([&](auto& state) { state.memory.Map(begin, bytes); });
}

// 0x401000 was called by 0x402000, and that by 0x403000, beyond the first copy.
inline void MapWaitingStack() {
  MapStack(kStackLow, kStackHigh,
           {{kWaitFp, 0x70F800}, {kWaitFp + 8, 0x402000}, {0x70F800, 0}, {0x70F808, 0x403000}});
}

}  // namespace strobe::internal
