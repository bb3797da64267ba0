// PerfRingReader: records in a ring that the kernel writes. PerfRing: one such ring, mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "perf/perf_records.h"

namespace strobe::internal {

// Takes the records between the reader's and the writer's place out of a ring. Both places count
// bytes since the ring was made, and never wrap. The format is that of perf_event_open(2).
class PerfRingReader {
 public:
  // The size of a record has 16 bits.
  static constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 16;

  // `data`: a power of two of bytes.
  explicit PerfRingReader(std::span<const std::byte> data) : data_(data) {}

  // Begins to read what lies in [tail, head).
  void Begin(std::uint64_t tail, std::uint64_t head);
  // Takes the next record, which is valid until the next call. False at the end. What has no size
  // of a record ends the reading: the rest up to the head is skipped, and counted as broken.
  bool Next(PerfRecord& record);
  // Where the next record is.
  [[nodiscard]] std::uint64_t tail() const { return tail_; }
  // How often the rest of a ring was skipped.
  [[nodiscard]] std::uint64_t broken() const { return broken_; }

 private:
  std::span<const std::byte> Bytes(std::uint64_t at, std::size_t count);
  bool Skip();

  const std::span<const std::byte> data_;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t broken_ = 0;
  std::vector<std::byte> joined_;  // a record that goes around the ring's end
};

// The ring of an event. Events of the same CPU may write into it, too.
class PerfRing {
 public:
  // Maps the ring of the event `descriptor`, of `data_bytes`, a power of two of pages. The errors
  // of mmap: PermissionDenied beyond the limit of locked memory, else Unavailable.
  static absl::StatusOr<std::unique_ptr<PerfRing>> Map(int descriptor, std::size_t data_bytes);
  ~PerfRing();
  PerfRing(const PerfRing&) = delete;
  PerfRing& operator=(const PerfRing&) = delete;

  // Calls `take` for each record that there is now, and gives its room back to the kernel.
  template <class Take>
  absl::Status Drain(Take take) {
    absl::Status status;
    PerfRecord record;
    reader_.Begin(reader_.tail(), head());
    while (status.ok() && reader_.Next(record)) status = take(record);
    Release();
    return status;
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] std::uint64_t broken() const { return reader_.broken(); }

 private:
  PerfRing(int descriptor, std::span<std::byte> mapping, std::size_t page_bytes)
      : descriptor_(descriptor), mapping_(mapping), reader_(mapping.subspan(page_bytes)) {}

  [[nodiscard]] std::uint64_t head() const;
  void Release();

  const int descriptor_;
  const std::span<std::byte> mapping_;  // a page for the places, then the records
  PerfRingReader reader_;
};

}  // namespace strobe::internal
