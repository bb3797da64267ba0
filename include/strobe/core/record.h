// What a capture writes into a ring and the collector reads: numbers only, nothing that points into the process, so that a ring can
// one day lie in memory shared with another process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strobe/base/address.h"
#include "strobe/core/stack.h"

namespace strobe {

// A record is this header, `weight_count` 64-bit weights (one a provider, in the order of the provider list), then `frame_count`
// 64-bit addresses, leaf first, then `slice_bytes` bytes of stack. Each weight is in its provider's own unit and says how much this stack
// stands for; zero means that this provider did not ask for this sample. The addresses are followed, towards the root, by the last
// `shared_count` frames of the stack of the thread's record before this one.
struct RecordHeader {
  std::uint32_t module_generation = 0;  // which map of modules the addresses belong to
  std::uint16_t frame_count = 0;
  std::uint16_t shared_count = 0;
  std::uint8_t weight_count = 0;
  StackEnd end = StackEnd::kComplete;
  std::uint16_t reserved = 0;
  std::uint32_t slice_bytes = 0;  // 0 where the walk came to its own end
};
static_assert(sizeof(RecordHeader) == 16);

// Bytes of a whole record.
constexpr std::size_t RecordBytes(std::size_t weight_count, std::size_t frame_count, std::size_t slice_bytes = 0) {
  return sizeof(RecordHeader) + weight_count * sizeof(std::int64_t) + frame_count * sizeof(Address) + slice_bytes;
}

}  // namespace strobe
