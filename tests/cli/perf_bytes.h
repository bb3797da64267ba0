// Records and events of perf, as the bytes of a file or of a ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "../../src/cli/perf/perf_header.h"
#include "../../src/cli/perf/perf_records.h"
#include "support/bytes.h"

namespace strobe::internal {

using testing::Bytes;
using testing::Fixed;
using testing::Join;

inline std::span<const std::byte> AsBytes(const Bytes& bytes) {
  return std::as_bytes(std::span(bytes));
}
inline Bytes Word(std::uint64_t word) { return Fixed(word); }
inline Bytes HalfWord(std::uint32_t half) { return Fixed(half); }
inline Bytes Words(const std::vector<std::uint64_t>& words) {
  Bytes all;
  for (const std::uint64_t word : words) all = Join({all, Word(word)});
  return all;
}
// The letters and zeros, up to the end of a word.
inline Bytes PaddedText(std::string_view letters) {
  Bytes bytes(letters.begin(), letters.end());
  bytes.resize(letters.size() / 8 * 8 + 8);
  return bytes;
}

inline PerfRecord RecordOf(PerfRecordType type, const Bytes& body, std::uint16_t misc = 0) {
  return {type, misc, AsBytes(body)};
}
inline Bytes RecordBytes(PerfRecordType type, const Bytes& body, std::uint16_t misc = 0) {
  return Join({Fixed(static_cast<std::uint32_t>(type)), Fixed(misc),
               Fixed(static_cast<std::uint16_t>(body.size() + 8)), body});
}

// The body of a record kComm.
inline Bytes NameBody(std::uint32_t process, std::uint32_t thread, std::string_view name) {
  return Join({HalfWord(process), HalfWord(thread), PaddedText(name)});
}
// The body of a record kFork or kExit.
inline Bytes ForkBody(std::uint32_t process, std::uint32_t parent, std::uint32_t thread,
                      std::uint32_t parent_thread) {
  return Join(
      {HalfWord(process), HalfWord(parent), HalfWord(thread), HalfWord(parent_thread), Word(0)});
}
// The body of a record kMmap2, with the protection PROT_READ | PROT_EXEC unless given.
inline Bytes MapBody(std::uint32_t process, std::uint64_t start, std::uint64_t bytes,
                     std::uint64_t offset, std::string_view path, const Bytes& file = Bytes(24),
                     std::uint32_t protection = 5) {
  return Join({HalfWord(process), HalfWord(process), Word(start), Word(bytes), Word(offset), file,
               HalfWord(protection), HalfWord(2), PaddedText(path)});
}

// The attributes of an event, as perf_event_open takes them.
struct AttributeBytes {
  std::uint32_t type = PerfEvent::kSoftware;
  std::uint64_t config = 1;  // task-clock
  std::uint64_t period = 1000;
  std::uint64_t sample_type = kPerfIp | kPerfThread | kPerfTime;
  std::uint64_t flags = 0;
  std::uint64_t branches = 0;
  std::uint64_t registers = 0;
  std::uint32_t clock = 0;

  [[nodiscard]] Bytes All() const {
    return Join({HalfWord(type), HalfWord(96), Word(config), Word(period), Word(sample_type),
                 Word(0), Word(flags), Bytes(24), Word(branches), Word(registers), HalfWord(0),
                 HalfWord(clock)});
  }
};
inline constexpr std::uint64_t kFrequencyFlag = 1 << 10;
inline constexpr std::uint64_t kIdsInAllFlag = 1 << 18;
inline constexpr std::uint64_t kClockFlag = 1 << 25;

}  // namespace strobe::internal
