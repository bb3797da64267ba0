// Spool: profiles on disk that wait until a server takes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/core/stats.h"
#include "strobe/export/profile_directories.h"

namespace strobe {

struct SpoolOptions {
  std::string directory;        // absolute; created if missing, for this user alone
  std::string name;             // of the slots: "datadog.my_program"
  std::uint64_t max_bytes = 0;  // of the files that wait
  std::int64_t max_age_ns = 0;  // older files are dropped
};

// A spool has a slot, a directory <directory>/<name>.<number>, which it locks. So each session of
// each process has one to itself. A slot that a killed process has left goes to the next one that
// opens a spool of that name, with what waits in it.
// * Each profile is a file of its own. The bytes go to a temporary name, are synced, and are then
//   renamed: a process that is killed, or a power cut, leaves a whole file or none. The file is
//   removed when its profile has been delivered.
// * A file begins with a header that has the length and a checksum of the rest. A damaged file is
//   set aside: its name then ends in ".damaged". kMaxDamagedFiles of them are kept.
// * Beyond max_bytes or kMaxFiles the oldest files are dropped, and so are those beyond max_age_ns,
//   by the system's clock.
// Not thread-safe. Control plane.
class Spool {
 public:
  static constexpr std::size_t kMaxSlots = 64;
  static constexpr std::size_t kMaxFiles = 10'000;
  static constexpr std::size_t kMaxDamagedFiles = 16;

  struct Entry {
    std::string file;          // its name in the slot
    std::uint64_t bytes = 0;   // of the file
    std::int64_t time_ns = 0;  // when it was added, since 1970
    std::int64_t amount = 0;   // what its profile counts if it is dropped
  };

  // Does nothing yet. `directories` must outlive the spool.
  Spool(const ProfileDirectories& directories, SpoolOptions options)
      : directories_(&directories), options_(std::move(options)) {}

  // Takes a slot: one that has files, if there is one. Does nothing if the spool has one already.
  absl::Status Open(std::int64_t now_ns);
  // Takes the next slot that has files, if this one has none and another is free.
  void MoveOn(std::int64_t now_ns);

  // Adds a profile that has `amount`. Drops the oldest if there is no room.
  absl::StatusOr<Entry> Add(std::string_view bytes, std::int64_t amount, std::int64_t now_ns);
  // The oldest that is not older than max_age_ns. Drops those that are.
  [[nodiscard]] std::optional<Entry> Oldest(std::int64_t now_ns);
  // DataLoss if the file is damaged or gone: it has been set aside and dropped.
  absl::StatusOr<std::string> Read(const Entry& entry);
  // The profile has been delivered.
  void Remove(const Entry& entry);
  // The profile will never be delivered.
  void Drop(const Entry& entry, ExportDrop reason);

  [[nodiscard]] std::string PathOf(const Entry& entry) const { return slot_->PathOf(entry.file); }
  [[nodiscard]] SpoolStats stats() const {
    return {.found = found_, .waiting = entries_.size(), .waiting_bytes = bytes_};
  }
  // The dropped profiles by reason, and their amount.
  [[nodiscard]] const std::array<std::uint64_t, kExportDropCount>& drops() const { return drops_; }
  [[nodiscard]] std::int64_t amount_dropped() const { return amount_dropped_; }

 private:
  [[nodiscard]] std::string SlotPath(std::size_t number) const;
  [[nodiscard]] bool TakeSlotWithFiles();
  [[nodiscard]] absl::Status TakeAnySlot();
  [[nodiscard]] static std::deque<Entry> EntriesOf(const ProfileDirectory& slot);
  void Use(std::unique_ptr<ProfileDirectory> slot, std::deque<Entry> entries);
  void DropBeyond(std::uint64_t more_bytes);
  void SetAside(const Entry& entry);
  void Forget(const Entry& entry);

  const ProfileDirectories* directories_;
  SpoolOptions options_;
  std::unique_ptr<ProfileDirectory> slot_;
  std::deque<Entry> entries_;  // oldest first
  std::uint64_t bytes_ = 0;
  std::uint64_t found_ = 0;
  std::uint64_t sequence_ = 0;
  std::array<std::uint64_t, kExportDropCount> drops_{};
  std::int64_t amount_dropped_ = 0;
};

}  // namespace strobe
