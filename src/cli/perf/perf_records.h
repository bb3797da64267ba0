// The records of a perf.data file: their types, their order, and what samples have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perf_header.h"
#include "strobe/process/mapping.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

enum class PerfRecordType : std::uint32_t {
  kMmap = 1,
  kLost = 2,
  kComm = 3,
  kExit = 4,
  kFork = 7,
  kSample = 9,
  kMmap2 = 10,
  kLostSamples = 13,
  kSwitch = 14,
  kSwitchOfCpu = 15,  // in an event of a CPU
  // Of perf itself, not of the kernel.
  kFirstOfPerf = 64,
  kAttributes = 64,
  kTracingData = 66,
  kBuildId = 67,
  kFinishedRound = 68,
  kAuxTrace = 71,
  kEventUpdate = 78,
  kFeature = 80,
  kCompressed = 81,
  kCompressed2 = 83,
};

struct PerfRecord {
  PerfRecordType type{};
  std::uint16_t misc = 0;
  std::span<const std::byte> body{};  // without its header
};

// Reads records one after the other.
class PerfRecordReader {
 public:
  // `source` must outlive the reader.
  PerfRecordReader(const ByteSource& source, const PerfHeader& header)
      : source_(source), at_(header.begin), end_(header.end), may_be_cut_(header.is_cut_off) {}
  // Of a file that has no header, but records alone.
  explicit PerfRecordReader(const ByteSource& source)
      : source_(source), at_(0), end_(source.size()), may_be_cut_(true) {}

  // Takes the next record, which is valid until the next call. False at the end.
  absl::StatusOr<bool> Next(PerfRecord& record);
  // Where the next record is in the file.
  [[nodiscard]] std::uint64_t offset() const { return at_; }

 private:
  bool Fill(std::size_t bytes);

  const ByteSource& source_;
  std::uint64_t at_;
  std::uint64_t end_;
  bool may_be_cut_;
  std::vector<std::byte> window_;
  std::uint64_t window_at_ = 0;  // in the file
};

// Takes the record at the beginning of `bytes`, and returns how long it is; 0 if its end is not
// there yet. InvalidArgument for a record without a size.
absl::StatusOr<std::size_t> ParseRecord(std::span<const std::byte> bytes, PerfRecord& record);
// The time of a record; 0 if it has none.
std::uint64_t TimeOf(const PerfHeader& header, const PerfRecord& record);
// The thread of a record of the kernel that is no sample; 0 if the record does not say it.
std::uint32_t ThreadOf(const PerfHeader& header, const PerfRecord& record);
// The same of its process.
std::uint32_t ProcessOf(const PerfHeader& header, const PerfRecord& record);
// True if a record of type kComm says that the process has executed a program.
bool IsExec(const PerfRecord& record);
// True if a record of a switch says that its thread goes off the CPU, not onto it.
bool IsSwitchOut(const PerfRecord& record);
// The index of a sample's event.
std::uint32_t EventOf(const PerfHeader& header, const PerfRecord& sample);
// The index of the event that a record of another kind is of; nothing if it does not say so.
std::optional<std::uint32_t> EventOfOther(const PerfHeader& header, const PerfRecord& record);

// Code that a process has mapped.
struct PerfMap {
  std::uint32_t process = 0;
  Mapping mapping;
};
// Empty if the record, of type kMmap or kMmap2, is broken, or says where data is.
std::optional<PerfMap> ParseMap(const PerfRecord& record);

struct PerfSample {
  std::uint64_t ip = 0;
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
  std::uint64_t time = 0;
  std::uint64_t period = 0;
  std::span<const std::byte> callchain{};  // words
  std::span<const std::byte> raw{};        // of a tracepoint
  std::uint64_t registers_kind = 0;        // see PerfRegisters
  std::span<const std::byte> registers{};  // words, one for each bit of the event's registers
  std::span<const std::byte> stack{};
};
// False if the sample is shorter than it says.
bool ParseSample(const PerfEvent& event, std::span<const std::byte> body, PerfSample& sample);
// The number in a sample's raw data; 0 for one below 0, nothing if the data ends before it.
std::optional<std::uint64_t> ValueOf(const TracepointField& field, std::span<const std::byte> raw);

// Puts the records of several CPUs in the order of their times. A copy of each record is kept until
// no earlier one can come: perf marks rounds, in each of which it has read what every CPU had.
class PerfOrder {
 public:
  using Sink = std::function<absl::Status(const PerfRecord& record, std::uint64_t time)>;

  // Beyond this much, the older half is taken to be complete.
  static constexpr std::size_t kMaxBytes = std::size_t{512} << 20;

  explicit PerfOrder(Sink sink) : sink_(std::move(sink)) {}

  absl::Status Add(const PerfRecord& record, std::uint64_t time);
  absl::Status EndRound();
  // Gives all records up to `time`, than which no earlier one can come.
  absl::Status EndAt(std::uint64_t time) { return Give(time); }
  absl::Status Finish() { return Give(~std::uint64_t{0}); }
  // The records up to that time have been given.
  [[nodiscard]] std::uint64_t given_until() const { return given_until_; }

 private:
  struct Place {
    std::uint64_t time;
    std::size_t offset;
    std::uint32_t bytes;
    PerfRecordType type;
    std::uint16_t misc;
  };

  absl::Status Give(std::uint64_t until);

  Sink sink_;
  std::vector<Place> places_;
  std::vector<std::byte> bytes_;
  std::uint64_t newest_ = 0;
  std::uint64_t newest_of_last_round_ = 0;
  std::uint64_t given_until_ = 0;
};

}  // namespace strobe::internal
