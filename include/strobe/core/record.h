// What a capture writes into a ring and the collector reads: numbers only, nothing that points into
// the process, so that a ring can one day lie in memory shared with another process.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/core/stack.h"

namespace strobe {

// Which optional words follow a record's header, in this order.
inline constexpr std::uint8_t kRecordHasContext = 1;  // the thread's: the number of a set of labels
inline constexpr std::uint8_t kRecordHasTime = 2;     // the clock's monotonic time, in nanoseconds
inline constexpr std::uint8_t kRecordHasSkip = 4;     // how many of the leaf's frames are left out
inline constexpr std::uint8_t kAllRecordFlags = kRecordHasContext | kRecordHasTime | kRecordHasSkip;

// Value types that a record can have amounts of.
inline constexpr std::size_t kMaxValueTypes = 16;

// A record is this header; 64-bit words: those that the flags name, and an amount for each bit of
// `amounts`; then `frame_count` 64-bit addresses, leaf first; then `slice_bytes` of a SliceHeader
// and a stack. Bit n of `amounts` stands for value type n; amounts that are zero are left out. An
// amount says how much this stack stands for, in the unit of its provider: of a provider that
// counts periods, the count, under its first value type. The addresses are followed, towards the
// root, by the last `shared_count` frames of the stack of the thread's record before this one,
// whatever the context of either. With kRecordHasSkip, the amounts belong to the stack without so
// many frames of the leaf; the next record shares with the whole one.
struct RecordHeader {
  std::uint32_t module_generation = 0;  // which map of modules the addresses belong to
  std::uint16_t frame_count = 0;
  std::uint16_t shared_count = 0;
  std::uint16_t amounts = 0;
  StackEnd end = StackEnd::kComplete;
  std::uint8_t flags = 0;
  std::uint32_t slice_bytes = 0;  // 0 where the walk came to its own end
};
static_assert(sizeof(RecordHeader) == 16);
static_assert(kMaxValueTypes <= 8 * sizeof(RecordHeader::amounts));

// What a slice begins with; the stack follows. A flag is a word, because what comes out of a
// ring is not trusted.
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
  std::array<Address, kMaxGeneralRegisters> general{};
  Address base = 0;            // where the first byte of the stack lay
  std::uint64_t is_exact = 0;  // as FrameStop has it
};
static_assert(sizeof(SliceHeader) == 25 * 8);

// The words between a record's header and its frames.
constexpr std::size_t RecordWords(const RecordHeader& header) {
  return static_cast<std::size_t>(std::popcount(header.flags)) +
         static_cast<std::size_t>(std::popcount(header.amounts));
}

// Bytes of a whole record.
constexpr std::size_t RecordBytes(std::size_t word_count, std::size_t frame_count,
                                  std::size_t slice_bytes = 0) {
  return sizeof(RecordHeader) + word_count * sizeof(std::uint64_t) + frame_count * sizeof(Address) +
         slice_bytes;
}

// How the values of a profile's row follow from the amounts of a record: column i is the amount of
// value type sources[i], times what the thread's unit of that amount stands for in column i.
struct ValueLayout {
  std::size_t value_count = 0;
  std::uint16_t recorded = 0;  // the value types that records have amounts of, as RecordHeader has
  std::array<std::uint8_t, kMaxValueTypes> sources{};
};

// A record's parts, where they lie.
struct RecordView {
  RecordHeader header;
  std::uint64_t context = 0;  // 0 without one
  std::int64_t time_ns = 0;   // 0 without one
  std::uint64_t skip = 0;     // 0 without one
  std::span<const std::int64_t> amounts;
  std::span<const Address> frames;
  std::span<const std::byte> slice;

  // The amount of that value type; 0 where the record has none.
  [[nodiscard]] std::int64_t Amount(std::size_t value_type) const {
    const auto bit = std::uint32_t{1} << value_type;
    if ((header.amounts & bit) == 0) return 0;
    return amounts[static_cast<std::size_t>(std::popcount(header.amounts & (bit - 1)))];
  }
};

// Reads a record with amounts of `value_types` alone, aligned to 8 bytes. False where it is none:
// anything may have been written into a ring, so all counts are checked against the record's size
// before anything behind the header is read.
inline bool ReadRecord(std::span<const std::byte> record, std::uint16_t value_types,
                       RecordView& view) {
  RecordHeader& header = view.header;
  if (record.size() < sizeof(header)) return false;
  std::memcpy(&header, record.data(), sizeof(header));
  if ((header.amounts & ~value_types) != 0 || (header.flags & ~kAllRecordFlags) != 0) return false;
  const std::size_t words = RecordWords(header);
  if (record.size() != RecordBytes(words, header.frame_count, header.slice_bytes)) return false;
  if (static_cast<std::size_t>(header.end) >= kStackEndCount) return false;
  if (std::size_t{header.frame_count} + header.shared_count > kMaxFramesLimit) return false;
  const std::byte* next = record.data() + sizeof(header);
  const auto take = [&](std::uint8_t flag, auto& word) {
    word = 0;
    if ((header.flags & flag) == 0) return;
    std::memcpy(&word, next, sizeof(word));
    next += sizeof(word);
  };
  take(kRecordHasContext, view.context);
  take(kRecordHasTime, view.time_ns);
  take(kRecordHasSkip, view.skip);
  view.amounts = {reinterpret_cast<const std::int64_t*>(next),
                  static_cast<std::size_t>(std::popcount(header.amounts))};
  view.frames = {reinterpret_cast<const Address*>(record.data() + RecordBytes(words, 0)),
                 header.frame_count};
  view.slice = record.last(header.slice_bytes);
  return true;
}

}  // namespace strobe
