// The record that a capture writes into a ring and that the collector reads. It holds numbers only,
// no pointers, so that a ring can lie in memory shared with another process.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/core/sample_context.h"
#include "strobe/core/stack.h"

namespace strobe {

// Which optional words follow a record's header, in this order.
inline constexpr std::uint8_t kRecordHasContext = 1;  // the number of the thread's set of labels
inline constexpr std::uint8_t kRecordHasTime = 2;     // the clock's monotonic time, in nanoseconds
inline constexpr std::uint8_t kRecordHasSkip = 4;     // how many of the leaf's frames are left out
inline constexpr std::uint8_t kRecordHasTrace = 8;    // three words: see TraceContext
inline constexpr std::uint8_t kAllRecordFlags =
    kRecordHasContext | kRecordHasTime | kRecordHasSkip | kRecordHasTrace;

// The most value types that a record can have amounts of.
inline constexpr std::size_t kMaxValueTypes = 16;

// A record consists of:
// * this header;
// * 64-bit words: those that the flags name, then one amount for each bit of `amounts`;
// * `frame_count` 64-bit addresses, leaf first;
// * `slice_bytes` of a SliceHeader and a copy of the stack.
// Bit n of `amounts` stands for value type n. Amounts that are zero are left out. An amount says
// how much this stack stands for, in the unit of the value type. A value type that counts samples
// has no amount.
//
// The stack continues towards the root with the last `shared_count` frames of the thread's previous
// record, whatever the context of either record. With kRecordHasSkip, the amounts belong to the
// stack without that many leaf frames; the next record shares with the whole stack.
struct RecordHeader {
  std::uint32_t module_generation = 0;  // which map of modules the addresses belong to
  std::uint16_t frame_count = 0;
  std::uint16_t shared_count = 0;
  std::uint16_t amounts = 0;
  StackEnd end = StackEnd::kComplete;
  std::uint8_t flags = 0;
  std::uint32_t slice_bytes = 0;  // 0 if the collector need not continue the walk
};
static_assert(sizeof(RecordHeader) == 16);
static_assert(kMaxValueTypes <= 8 * sizeof(RecordHeader::amounts));

// The front of a slice; the copy of the stack follows. A flag is a word, because a ring's bytes are
// not trusted and not every byte is a valid bool.
struct SliceHeader {
  // The frame that the walk stopped at: the last of the record.
  Address pc = 0;
  Address sp = 0;
  Address fp = 0;
  Address lr = 0;
  // The registers of the innermost frame, the first of the record. The unwind rules of some
  // functions need them.
  Address innermost_pc = 0;
  Address innermost_sp = 0;
  Address innermost_fp = 0;
  std::array<Address, kMaxGeneralRegisters> general{};
  Address base = 0;            // address of the stack's first byte, before the copy
  std::uint64_t is_exact = 0;  // see FrameStop
  std::uint64_t is_cut = 0;    // whether there was no room for all of the stack
  // The number that a StackTable has for the stack, until the collector has finished the walk (see
  // StackTable::AddPending); 0 if no table keeps the stack.
  std::uint64_t kept_number = 0;
  // The bounds of the thread's own stack; 0 if unknown.
  Address own_low = 0;
  Address own_high = 0;
};
static_assert(sizeof(SliceHeader) == 29 * 8);

// The words between a record's header and its frames.
constexpr std::size_t RecordWords(const RecordHeader& header) {
  return static_cast<std::size_t>(std::popcount(header.flags)) +
         ((header.flags & kRecordHasTrace) != 0 ? TraceContext::kWords - 1 : 0) +
         static_cast<std::size_t>(std::popcount(header.amounts));
}

// Bytes of a whole record.
constexpr std::size_t RecordBytes(std::size_t word_count, std::size_t frame_count,
                                  std::size_t slice_bytes = 0) {
  return sizeof(RecordHeader) + word_count * sizeof(std::uint64_t) + frame_count * sizeof(Address) +
         slice_bytes;
}

// How the amounts of a record become the values of a profile's row: column i is the amount of value
// type sources[i]; or, if is_count[i], 1 if the record has such an amount.
struct ValueLayout {
  std::size_t value_count = 0;
  std::uint16_t recorded = 0;  // the value types that records have amounts of, one bit each
  std::array<std::uint8_t, kMaxValueTypes> sources{};
  std::array<bool, kMaxValueTypes> is_count{};
};

// The parts of a record. The spans point into the record.
struct RecordView {
  RecordHeader header;
  SampleContext context;     // empty if the record has none
  std::int64_t time_ns = 0;  // 0 if the record has none
  std::uint64_t skip = 0;    // 0 if the record has none
  std::span<const std::int64_t> amounts;
  std::span<const Address> frames;
  std::span<const std::byte> slice;

  // The amount of `value_type`; 0 if the record has none.
  [[nodiscard]] std::int64_t Amount(std::size_t value_type) const {
    const auto bit = std::uint32_t{1} << value_type;
    if ((header.amounts & bit) == 0) return 0;
    return amounts[static_cast<std::size_t>(std::popcount(header.amounts & (bit - 1)))];
  }
};

// Reads a record that is aligned to 8 bytes and has amounts of `value_types` only. False if the
// bytes are not such a record. A ring may hold any bytes, so all counts are checked against the
// record's size before anything behind the header is read.
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
    word = {};
    if ((header.flags & flag) == 0) return;
    std::memcpy(&word, next, sizeof(word));
    next += sizeof(word);
  };
  take(kRecordHasContext, view.context.word);
  take(kRecordHasTime, view.time_ns);
  take(kRecordHasSkip, view.skip);
  take(kRecordHasTrace, view.context.trace);
  view.amounts = {reinterpret_cast<const std::int64_t*>(next),
                  static_cast<std::size_t>(std::popcount(header.amounts))};
  view.frames = {reinterpret_cast<const Address*>(record.data() + RecordBytes(words, 0)),
                 header.frame_count};
  view.slice = record.last(header.slice_bytes);
  return true;
}

}  // namespace strobe
