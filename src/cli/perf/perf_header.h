// PerfHeader: what a perf.data file says of its records: the events, and the files of the code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "strobe/arch/registers.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// What a sample has, as bits of PerfEvent::sample_type, in the order of their places.
enum PerfSampleBit : std::uint64_t {
  kPerfIp = 1 << 0,
  kPerfThread = 1 << 1,
  kPerfTime = 1 << 2,
  kPerfAddress = 1 << 3,
  kPerfRead = 1 << 4,
  kPerfCallchain = 1 << 5,
  kPerfId = 1 << 6,
  kPerfCpu = 1 << 7,
  kPerfPeriod = 1 << 8,
  kPerfStreamId = 1 << 9,
  kPerfRaw = 1 << 10,
  kPerfBranches = 1 << 11,
  kPerfRegisters = 1 << 12,
  kPerfStack = 1 << 13,
  kPerfIdentifier = 1 << 16,
};

// Where a number is in what a tracepoint's samples bring (PERF_SAMPLE_RAW).
struct TracepointField {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;  // 1, 2, 4 or 8
  bool is_signed = false;

  bool operator==(const TracepointField&) const = default;
};

// An event that was recorded.
struct PerfEvent {
  std::uint32_t type = 0;  // kPerfHardware, ...
  std::uint64_t config = 0;
  std::uint64_t period = 0;  // of each sample; 0 if it varies
  std::uint64_t sample_type = 0;
  std::uint64_t read_format = 0;
  std::uint64_t registers = 0;    // a bit for each register that samples have
  bool has_branch_index = false;  // see PERF_SAMPLE_BRANCH_HW_INDEX
  bool has_ids_in_all_records = false;
  bool has_monotonic_times = false;  // those of CLOCK_MONOTONIC
  // Samples are of threads that go off a CPU, and the amount is the time until they are back.
  bool is_off_cpu = false;
  // Each of these samples is also one of the event context-switches.
  bool is_switch = false;
  // The amount of a sample is this field's, and each event has a sample; else the sample counts for
  // its period.
  std::optional<TracepointField> field{};
  std::string name;

  static constexpr std::uint32_t kHardware = 0;
  static constexpr std::uint32_t kSoftware = 1;
  static constexpr std::uint32_t kTracepoint = 2;
  static constexpr std::uint32_t kCache = 3;

  // True if its amounts are nanoseconds.
  [[nodiscard]] bool is_clock() const { return type == kSoftware && config <= 1; }
  // True if it has itself counted the samples that it has lost (PERF_FORMAT_LOST).
  [[nodiscard]] bool counts_lost() const { return (read_format & 16) != 0; }
  // True if it has no samples: perf adds it for the other records.
  [[nodiscard]] bool is_dummy() const { return type == kSoftware && config == 9; }
};

// Both layouts: the one with a table of sections, and that of a pipe, in which the header consists
// of records, too.
struct PerfHeader {
  std::vector<PerfEvent> events;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> events_by_id;  // indices
  std::map<std::string, std::string, std::less<>> build_ids;       // by path, hexadecimal
  // Of the machine that was recorded; nothing for one whose stacks are not unwound.
  std::optional<Architecture> architecture = kNativeArchitecture;
  std::int64_t clock_offset_ns = 0;  // what added to records' times makes times since 1970
  // Where the records are.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool is_cut_off = false;  // perf did not end well: the last record may be a part of one

  // Takes over what comes before and after the records.
  absl::Status Read(const ByteSource& source);
  // Adds an event by its attributes, as perf_event_open takes them.
  absl::Status AddEvent(std::span<const std::byte> attributes, std::span<const std::byte> ids);
  // A section of the header, by its number. Those that are not needed are ignored.
  void TakeFeature(std::uint32_t number, std::span<const std::byte> bytes);
  // A record that says a file's build id.
  void TakeBuildId(std::uint16_t misc, std::span<const std::byte> body);
};

// True if these are a file's first bytes.
bool IsPerfData(std::string_view bytes);

// Lower-case hexadecimal.
std::string HexOf(std::span<const std::byte> bytes);

}  // namespace strobe::internal
