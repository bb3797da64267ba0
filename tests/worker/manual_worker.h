// A program and its worker in one process, on manual platforms: their channels lie in a SharedArea.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/provider/cpu_time_provider.h"
#include "strobe/provider/off_cpu_time_provider.h"
#include "strobe/provider/wall_time_provider.h"
#include "strobe/ring/spsc_ring.h"
#include "strobe/runtime/code/published_code.h"
#include "strobe/runtime/session/session.h"
#include "strobe/runtime/threads/thread_registry.h"
#include "strobe/testing/fakes/archetypes.h"
#include "strobe/testing/fakes/manual_clock.h"
#include "strobe/testing/fakes/manual_platform.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"
#include "strobe/worker/shared/shared_area.h"
#include "support/check.h"

namespace strobe {
namespace STROBE_HIDDEN testing {

inline constexpr std::size_t kSharedRingBytes = 4096;
inline constexpr std::uint32_t kSharedChunks = 2;

// The area of both.
inline internal::SharedArea& TheArea() {
  static internal::SharedArea area;
  return area;
}

template <bool kAdopts>
struct SharingPlatform : ManualPlatform {
  static constexpr bool kAdoptsChannels = kAdopts;
  static inline std::uint32_t used_chunks = 0;

  static internal::PublishedCode& SharedCode() noexcept { return TheArea().header().codes[0]; }
  static Mapping MapMemory(std::uint64_t bytes) {
    const std::span<std::byte> chunk = TheArea().Chunk(used_chunks);
    if (chunk.size() != bytes) return {};
    ++used_chunks;
    return {.bytes = chunk};
  }
  static void DiscardMemory(void* memory, std::uint64_t bytes) {
    const std::span<std::byte> first = TheArea().Chunk(0);
    const std::byte* const begin = static_cast<std::byte*>(memory);
    testing::Check(
        begin >= first.data() && begin + bytes <= first.data() + kSharedChunks * first.size(),
        "memory outside of the chunks is given back");
    std::memset(memory, 0, bytes);
  }
};

struct ManualProgram : SharingPlatform<false> {};
struct ManualWorker : SharingPlatform<true> {
  static inline std::set<std::uint64_t> noted;  // threads whose clocks are noted

  static bool HasArea() { return true; }

  static void GiveBack(std::uint32_t thread) {
    if (internal::SharedRegistration* const shared = TheArea().At(thread))
      shared->state = internal::SharedRegistrationState::kFree;
  }
  static void NoteThread(std::uint32_t /*thread*/, std::uint64_t /*thread_id*/) {}
  static std::shared_ptr<const UnwindModules> ExposeTables(
      const std::shared_ptr<const UnwindModules>& tables) {
    return tables;
  }
  static void NoteClock(std::uint64_t thread_id, std::int64_t cpu_ns) {
    noted.insert(thread_id);
    With([&](State& state) { state.cpu_ns[thread_id] = cpu_ns; });
  }
  static void ForgetClock(std::uint64_t thread_id) {
    noted.erase(thread_id);
    With([&](State& state) { state.cpu_ns.erase(thread_id); });
  }
  static std::uint64_t BlockedSignals(std::uint64_t /*thread_id*/) { return ~std::uint64_t{0}; }
};

struct ManualProgramTraits : ArchetypeTraits {
  using Clock = ManualClock;
  using Ring = SpscRing;
  using Unwinder = ChainUnwinder<CfiStep, FramePointerStep>;
  using Providers = ProviderList<CpuTimeProvider, WallTimeProvider, OffCpuTimeProvider>;
  using Platform = ManualProgram;
};
struct ManualWorkerTraits : ManualProgramTraits {
  using Platform = ManualWorker;
};
static_assert(internal::SharesChannels<ManualProgram> && internal::AdoptsChannels<ManualWorker>);

// Makes the area, and registers threads 1, 2, … of the program: their threads are 0, 1, …
class ManualSharing {
 public:
  using ProgramThread = internal::RegisteredThread<ManualProgramTraits>;
  using Arena = internal::ChannelArena<ManualProgramTraits>;

  explicit ManualSharing(std::uint32_t threads) {
    const absl::StatusOr<internal::SharedArea> area = internal::SharedArea::Create(
        kSharedChunks, Arena::kChannelsPerChunk, Arena::ChunkBytes(kSharedRingBytes));
    testing::Check(area.ok(), "no memory to share");
    TheArea() = *area;
    for (std::uint32_t chunk = 0; chunk < kSharedChunks; ++chunk)
      testing::Check(TheArea().OpenChunk(chunk), "no memory to share");
    ManualProgram::used_chunks = ManualWorker::used_chunks = 0;
    for (std::uint64_t id = 1; id <= threads; ++id) {
      threads_.push_back(*program_.Register({.id = id, .stack = {}}, "thread"));
      rings_.push_back(program_.arena()->RingMemory(threads_.back()->index()));
    }
  }

  [[nodiscard]] ProgramThread& At(std::size_t index) { return *threads_[index]; }
  // The memory of its ring, whatever its channel says by now.
  [[nodiscard]] std::span<std::byte> RingAt(std::size_t index) const { return rings_[index]; }
  void Take(std::uint32_t index) {
    internal::SharedRegistration& shared = *TheArea().At(index);
    shared.since_ns = shared.begin_ns = ManualClock().MonotonicNs();
    shared.since_cpu_ns = 0;
    std::memcpy(shared.name, "entry", shared.name_bytes = 6);
    shared.state = internal::SharedRegistrationState::kTaken;
    TheArea().Announce(index);
  }
  static void Leave(std::uint32_t index, std::int64_t cpu_ns) {
    internal::SharedRegistration& shared = *TheArea().At(index);
    shared.end_cpu_ns = cpu_ns;
    shared.state = internal::SharedRegistrationState::kLeft;
    TheArea().Announce(index);
  }

 private:
  internal::ThreadRegistry<ManualProgramTraits> program_{1000, kSharedRingBytes};
  std::vector<ProgramThread*> threads_;
  std::vector<std::span<std::byte>> rings_;
};

}  // namespace testing
}  // namespace strobe
