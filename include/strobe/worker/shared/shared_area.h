// SharedArea: the memory that a program and its worker both map: the channels of the program's
// threads, and a registration for each of them.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/cache_line.h"
#include "strobe/base/visibility.h"
#include "strobe/core/record.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/runtime/code/published_code.h"
#include "strobe/worker/shared/shared_contexts.h"
#include "strobe/worker/shared/shared_ranges.h"
#include "strobe/worker/shared/shared_tables.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Who may write a registration and its channel. The program makes a registration taken, then left;
// the worker makes it free again.
enum class SharedRegistrationState : std::uint32_t {
  kFree,
  kTaken,  // by a registered thread
  kLeft,   // the registration has ended; its last records may still be in the ring
};

// What the worker has to know of a registered thread besides its channel. The program writes a
// field before the state that it belongs to, by a release store.
struct SharedRegistration {
  static constexpr std::size_t kNameBytes = 64;

  std::atomic<SharedRegistrationState> state{SharedRegistrationState::kFree};
  std::uint32_t name_bytes = 0;
  std::int64_t begin_ns = 0;  // of the registration, by the monotonic clock
  // What the monotonic and the thread's CPU clock read when the account began, and when the
  // registration ended.
  std::int64_t since_ns = 0;
  std::int64_t since_cpu_ns = -1;
  std::int64_t end_ns = 0;
  std::int64_t end_cpu_ns = -1;
  char name[kNameBytes] = {};
};

// A place in the file has 8 bytes or less, in the byte order of the machine.
struct SharedAreaHeader {
  static constexpr std::uint64_t kMagic = 0x41455241424F5254;  // "TROBAREA"
  static constexpr std::uint32_t kVersion = 9;
  // One for each of the last workers: one that the program has lost may still write for a while.
  static constexpr std::size_t kCodes = 8;

  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t registration_bytes = sizeof(SharedRegistration);
  std::uint32_t chunks = 0;  // room for so many
  std::uint32_t chunk_channels = 0;
  std::uint64_t chunk_bytes = 0;
  std::uint64_t address = 0;  // where the program has mapped the area
  // Grows with each change of a registration or of the generated code. The worker waits for that
  // on a futex.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> changes{0};
  std::atomic<std::uint32_t> is_awaited{0};  // the worker waits: wake it
  // What captures know of the code. A worker keeps one of them current: see CodeOf.
  alignas(kCacheLineBytes) std::array<PublishedCode, kCodes> codes;
  // CPU time of threads whose registrations are free and that no exported profile has: see
  // ExportMarks. The worker keeps it current.
  std::atomic<std::int64_t> unexported_cpu_ns{0};
  // The CPU time lost with the worker before this one. The program writes it before the hello.
  std::atomic<std::int64_t> lost_cpu_ns{0};
  // By value type, since the session's begin: what the program's events have brought, and what the
  // exported profiles have. The worker keeps the second current; it has more than events.
  using Amounts = std::array<std::atomic<std::int64_t>, kMaxValueTypes>;
  Amounts events_brought{};
  Amounts values_exported{};
  // The worker that has the area: no other drains it, or writes into it. The number is 0 while none
  // has it. Above the number are the bits of kWorkerMark: what the program has written here by
  // mistake is told from a number, and says nothing.
  static constexpr std::uint64_t kWorkerMark = std::uint64_t{0x574F524B} << 32;
  std::atomic<std::uint64_t> worker{kWorkerMark};
  // So is the worker that the program has lost, and wants the area back from.
  std::atomic<std::uint64_t> lost_worker{0};
};

// Both processes map the whole file once, and keep it mapped until they end: a late signal may
// still touch a channel. The file cannot shrink, so no access of either side faults.
class SharedArea {
 public:
  // The most chunks that any area has room for: see ChannelArena::kMaxChunks.
  static constexpr std::uint32_t kMaxChunks = 4096;

  // OK if the system has memory that a descriptor names, and sockets to send that. Unimplemented,
  // with the system's reason, if not.
  static absl::Status Available();
  // Makes one in memory. ResourceExhausted if the system refuses.
  static absl::StatusOr<SharedArea> Create(std::uint32_t chunks, std::uint32_t chunk_channels,
                                           std::uint64_t chunk_bytes);
  // Maps one that another process has made; takes over the descriptor. InvalidArgument if it is not
  // such an area, or has another layout than this process expects.
  static absl::StatusOr<SharedArea> Adopt(int descriptor, std::uint32_t chunk_channels,
                                          std::uint64_t chunk_bytes);

  // Unmaps it and closes the descriptor, for all copies of this object.
  void Unmap();

  [[nodiscard]] SharedAreaHeader& header() const { return *header_; }
  // -1 if the program has closed it: no further worker can have the area then.
  [[nodiscard]] int descriptor() const { return file_.Number(); }
  // Another one, which the caller owns, also on a thread that has files of its own.
  [[nodiscard]] int NewDescriptor() const { return file_.Reopen(); }
  // Of that channel; nullptr beyond the room.
  [[nodiscard]] SharedRegistration* At(std::uint32_t channel) const;
  // The memory of a chunk of channels; empty beyond the room.
  [[nodiscard]] std::span<std::byte> Chunk(std::uint32_t chunk) const;
  // In the program, before the first use of a chunk and of its channels' registrations: until then
  // the program cannot touch them, so that they take no memory, even of a program that locks all of
  // its own. False if the system refuses.
  [[nodiscard]] bool OpenChunk(std::uint32_t chunk) const;

  // What captures know of the code while that worker serves.
  [[nodiscard]] PublishedCode& CodeOf(std::uint32_t worker) const {
    return header_->codes[worker % SharedAreaHeader::kCodes];
  }
  // For the caches of the tables that the worker shares.
  [[nodiscard]] SharedCaches Caches() const;
  [[nodiscard]] SharedContexts& Contexts() const;
  [[nodiscard]] SharedRanges& Ranges() const;
  // See LevelMemory.
  [[nodiscard]] std::span<std::byte> Levels() const;

  // The program has changed the state of a registration.
  void Announce(std::uint32_t channel) const;
  // The program has changed something: ends the wait of AwaitChange.
  void NoteChange() const;
  // Calls visit(channel) for each channel announced since the last call.
  template <class Visitor>
  void VisitChanged(const Visitor& visit) const {
    for (std::uint32_t chunk = 0; chunk < chunks_; ++chunk) {
      if (changed_[chunk].load(std::memory_order_relaxed) == 0) continue;
      std::uint64_t channels = changed_[chunk].exchange(0, std::memory_order_acq_rel);
      for (; channels != 0; channels &= channels - 1)
        visit(chunk * kChunkChannels + static_cast<std::uint32_t>(std::countr_zero(channels)));
    }
  }
  // Waits until `changes` is not `seen` any more, at most for that time.
  void AwaitChange(std::uint32_t seen, std::int64_t timeout_ns) const;
  // Ends the wait that is under way.
  void Wake() const;

  // In the program. A worker that it has lost may live: then that worker is given `timeout_ns` to
  // drain the area and to give it back. Later it finds that it has the area no more.
  void TakeBack(std::int64_t timeout_ns) const;
  // To a worker of that number, when no other has it.
  void GiveTo(std::uint32_t worker) const;
  // In that worker. False if the program has taken the area back.
  [[nodiscard]] bool IsOf(std::uint32_t worker) const;
  [[nodiscard]] bool GiveBack(std::uint32_t worker) const;
  [[nodiscard]] bool IsWantedFrom(std::uint32_t worker) const;
  // Puts empty memory of this process's own in the area's place, for all copies of this object: no
  // thread of a worker that has the area no more can touch the program's.
  void Leave() const;

 private:
  static constexpr std::uint32_t kChunkChannels = 64;

  static std::uint64_t RegistrationsOffset(std::uint32_t chunks);
  static std::uint64_t CachesOffset(std::uint32_t chunks);
  static std::uint64_t ContextsOffset(std::uint32_t chunks);
  static std::uint64_t RangesOffset(std::uint32_t chunks);
  static std::uint64_t LevelsOffset(std::uint32_t chunks);
  static std::uint64_t ChunksOffset(std::uint32_t chunks);
  void Place(std::byte* memory);
  [[nodiscard]] bool Allow(std::uint64_t offset, std::uint64_t limit) const;

  KnownFile file_;
  std::uint32_t chunks_ = 0;  // validated: the header may change at any time
  std::uint64_t chunk_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  SharedAreaHeader* header_ = nullptr;
  std::atomic<std::uint64_t>* changed_ = nullptr;  // a word a chunk: its announced channels
  SharedRegistration* registrations_ = nullptr;
  std::byte* memory_ = nullptr;
};

}  // namespace internal
}  // namespace strobe
