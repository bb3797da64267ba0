// What a capture writes into a ring and the collector reads: numbers only, nothing that points into
// the process, so that a ring can one day lie in memory shared with another process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/core/stack.h"

namespace strobe {

// A record is this header, `weight_count` 64-bit weights (one a provider, in the order of the
// provider list), then `frame_count` 64-bit addresses, leaf first, then `slice_bytes` of a
// SliceHeader and a stack. Each weight is in its provider's own unit and says how much this stack
// stands for; zero means that this provider did not ask for this sample. The addresses are
// followed, towards the root, by the last `shared_count` frames of the stack of the thread's record
// before this one.
struct RecordHeader {
  std::uint32_t module_generation = 0;  // which map of modules the addresses belong to
  std::uint16_t frame_count = 0;
  std::uint16_t shared_count = 0;
  std::uint8_t weight_count = 0;
  StackEnd end = StackEnd::kComplete;
  std::uint16_t skip_count = 0;   // innermost frames that the sample leaves out
  std::uint32_t slice_bytes = 0;  // 0 where the walk came to its own end
};
static_assert(sizeof(RecordHeader) == 16);

// What a slice begins with; the stack follows. A flag is a word: nobody vouches for what comes out
// of a ring.
struct SliceHeader {
  // The frame that the walk stopped at, which is the record's last.
  Address pc = 0;
  Address sp = 0;
  Address fp = 0;
  Address lr = 0;
  // The registers of the innermost frame, the record's first, whose other values some functions are
  // left by.
  Address innermost_pc = 0;
  Address innermost_sp = 0;
  Address innermost_fp = 0;
  Address innermost_lr = 0;
  std::array<Address, kX86_64GeneralRegisters> general{};
  Address base = 0;            // where the first byte of the stack lay
  std::uint64_t is_exact = 0;  // as FrameStop has it
};
static_assert(sizeof(SliceHeader) == 26 * 8);

// Bytes of a whole record.
constexpr std::size_t RecordBytes(std::size_t weight_count, std::size_t frame_count,
                                  std::size_t slice_bytes = 0) {
  return sizeof(RecordHeader) + weight_count * sizeof(std::int64_t) +
         frame_count * sizeof(Address) + slice_bytes;
}

// A record's parts, where they lie.
struct RecordView {
  RecordHeader header;
  std::span<const std::int64_t> weights;
  std::span<const Address> frames;
  std::span<const std::byte> slice;
};

// Reads a record of `weight_count` weights, aligned to 8 bytes. False where it is none: nobody
// vouches for what comes out of a ring.
inline bool ReadRecord(std::span<const std::byte> record, std::size_t weight_count,
                       RecordView& view) {
  RecordHeader& header = view.header;
  if (record.size() < sizeof(header)) return false;
  std::memcpy(&header, record.data(), sizeof(header));
  if (header.weight_count != weight_count) return false;
  if (record.size() != RecordBytes(weight_count, header.frame_count, header.slice_bytes))
    return false;
  if (static_cast<std::size_t>(header.end) >= kStackEndCount) return false;
  if (std::size_t{header.frame_count} + header.shared_count > kMaxFramesLimit) return false;
  view.weights = {reinterpret_cast<const std::int64_t*>(record.data() + sizeof(header)),
                  weight_count};
  view.frames = {reinterpret_cast<const Address*>(record.data() + RecordBytes(weight_count, 0)),
                 header.frame_count};
  view.slice = record.last(header.slice_bytes);
  return true;
}

}  // namespace strobe
