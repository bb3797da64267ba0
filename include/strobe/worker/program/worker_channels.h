// WorkerChannels: the channels of a program with a worker, whatever parts have laid them out.
// ChannelsOf<Traits> are those of a profiler of these Traits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/arch/registers.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/stats.h"
#include "strobe/core/value_type.h"
#include "strobe/default_traits.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/capture/capture_here.h"
#include "strobe/runtime/session/delivery_check.h"
#include "strobe/runtime/threads/calling_thread.h"
#include "strobe/runtime/threads/thread_registry.h"
#include "strobe/worker/program/client_platform.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Any thread may call each function. Those that make or end sessions are called one at a time.
class WorkerChannels {
 public:
  // What a worker has to know of them.
  struct Layout {
    std::uint32_t channel_bytes = 0;
    std::uint32_t cells = 0;
    std::span<const ValueType> value_types;
    std::uint64_t chunk_bytes = 0;
  };
  // A slot with a thread. `registered` is what its Registration holds.
  struct Seated {
    void* registered = nullptr;
    std::uint32_t index = 0;
    std::uint64_t thread_id = 0;
    std::int64_t begin_ns = 0;
    std::string_view name;
  };

  WorkerChannels() = default;
  virtual ~WorkerChannels() = default;
  WorkerChannels(const WorkerChannels&) = delete;
  WorkerChannels& operator=(const WorkerChannels&) = delete;

  [[nodiscard]] virtual Layout layout() const = 0;
  // Makes the process's area, and finds room in it.
  virtual absl::Status Open() = 0;
  // The arena's number. After Open, as all that follows.
  [[nodiscard]] virtual std::uint8_t number() const = 0;

  // Of the calling thread.
  virtual absl::StatusOr<Seated> Register(std::string_view name, const SignalInUse& signal,
                                          const ThreadNeeds& needs) = 0;
  // The registration's end begins: no session may attach the thread any more. Returns its seat.
  virtual std::uint32_t BeginToEnd(void* registered) = 0;
  // True if that was the last one, and Orphan has been called.
  virtual bool Unregister(void* registered) = 0;
  virtual void CountRefused() = 0;
  // See ThreadRegistry.
  virtual std::size_t Orphan() = 0;

  virtual void BeginCollecting(const SamplingOptions& options) = 0;
  // Without a worker: captures end, and slots need not wait for it.
  virtual void EndCollecting() = 0;
  // No channel takes a sample any more, until a worker attaches it.
  virtual void Close() = 0;
  // Gives back the slots that the worker has settled.
  virtual void Reclaim() = 0;
  [[nodiscard]] virtual bool IsCapturing() = 0;
  // All slots that may have a thread.
  [[nodiscard]] virtual std::vector<Seated> All() = 0;
  virtual void AddTo(Stats& stats) = 0;

  // See AbstractCore. False in a fork's child: its parent's worker has the channels.
  virtual bool CaptureHere(const EventSample& event, const NativeRegisters* registers) noexcept = 0;
};

// The parts that run in the program: the default ones, but for the providers, on channels that a
// worker shares.
template <class ProviderList>
struct ClientTraits : DefaultTraits {
  using Providers = ProviderList;
  using Platform = ClientPlatform;
};

template <class Traits>
class ChannelsOf final : public WorkerChannels {
  static_assert(std::is_same_v<typename Traits::Platform, ClientPlatform>);

 public:
  using Arena = SlotArena<Traits>;
  using Slot = RegisteredThread<Traits>;
  using Providers = typename Traits::Providers;

  explicit ChannelsOf(const ThreadOptions& options)
      : max_threads_(static_cast<std::size_t>(*options.max_threads)),
        ring_bytes_(static_cast<std::size_t>(*options.ring_bytes)),
        registry_(max_threads_, ring_bytes_) {}

  [[nodiscard]] Layout layout() const override {
    static constexpr auto kValueTypes = Providers::AllValueTypes();
    return {.channel_bytes = sizeof(SampleChannel<Traits>),
            .cells = Providers::kCellCount,
            .value_types = kValueTypes,
            .chunk_bytes = Arena::ChunkBytes(ring_bytes_)};
  }
  absl::Status Open() override {
    const std::size_t slots = max_threads_ + Arena::kSharedSlots;
    const std::size_t chunks = (slots + Arena::kSlotsPerChunk - 1) / Arena::kSlotsPerChunk;
    // Retired slots wait for the worker, so there are twice as many.
    const std::size_t room = std::min<std::size_t>(2 * chunks, Arena::kMaxChunks);
    absl::Status status = ClientPlatform::Open(
        static_cast<std::uint32_t>(room), Arena::kSlotsPerChunk, Arena::ChunkBytes(ring_bytes_));
    return status.ok() ? registry_.Open() : status;
  }
  [[nodiscard]] std::uint8_t number() const override { return registry_.arena()->number(); }

  absl::StatusOr<Seated> Register(std::string_view name, const SignalInUse& signal,
                                  const ThreadNeeds& needs) override {
    const absl::StatusOr<Slot*> slot = RegisterCallingThread(registry_, name, signal, needs);
    if (!slot.ok()) return slot.status();
    return SeatedOf(**slot);
  }
  std::uint32_t BeginToEnd(void* registered) override {
    Slot& slot = *static_cast<Slot*>(registered);
    slot.is_ending.store(true, std::memory_order_release);
    return slot.index();
  }
  bool Unregister(void* registered) override {
    return UnregisterCallingThread(registry_, static_cast<Slot*>(registered));
  }
  void CountRefused() override { registry_.CountRefused(); }
  std::size_t Orphan() override { return registry_.Orphan(); }

  void BeginCollecting(const SamplingOptions& options) override {
    registry_.arena()->max_frames.store(static_cast<std::uint32_t>(*options.max_frames),
                                        std::memory_order_relaxed);
    registry_.arena()->keeps_times.store(*options.timestamps, std::memory_order_relaxed);
    registry_.BeginCollecting();
    SharedAreaHeader& header = ClientPlatform::Area().header();
    for (auto& amount : header.events_brought) amount.store(0, std::memory_order_relaxed);
    for (auto& amount : header.values_exported) amount.store(0, std::memory_order_relaxed);
  }
  void EndCollecting() override {
    Close();
    registry_.EndCollecting([](Slot& slot) {
      SeatState left = SeatState::kLeft;
      SeatOf(slot).state.compare_exchange_strong(left, SeatState::kFree, std::memory_order_acq_rel);
    });
  }
  void Close() override {
    registry_.VisitAll([](Slot& slot) {
      slot.channel->open_events.store(0, std::memory_order_seq_cst);
      slot.channel->is_active.store(false, std::memory_order_seq_cst);
    });
  }
  void Reclaim() override {
    registry_.ReclaimIf([](const Slot& slot) {
      return SeatOf(slot).state.load(std::memory_order_acquire) == SeatState::kFree;
    });
  }
  [[nodiscard]] bool IsCapturing() override { return registry_.IsCapturing(); }
  [[nodiscard]] std::vector<Seated> All() override {
    std::vector<Slot*> slots;
    registry_.CopyAll(slots);
    std::vector<Seated> seated;
    seated.reserve(slots.size());
    for (const Slot* slot : slots) seated.push_back(SeatedOf(*slot));
    return seated;
  }
  void AddTo(Stats& stats) override { registry_.AddTo(stats); }

  bool CaptureHere([[maybe_unused]] const EventSample& event,
                   [[maybe_unused]] const NativeRegisters* registers) noexcept override {
    if constexpr (Providers::kBringsEvents) {
      Arena* const arena = registry_.arena();
      if (arena == nullptr || !arena->IsOfThisProcess() || !Capture(*arena, event, registers))
        return false;
      SharedAreaHeader& header = ClientPlatform::Area().header();
      for (std::size_t i = 0; i < event.amounts.size(); ++i)
        header.events_brought[Providers::FirstColumn(event.provider) + i].fetch_add(
            event.amounts[i], std::memory_order_relaxed);
      return true;
    } else {
      return false;
    }
  }

 private:
  // Until the worker has seen a new thread's seat, the thread's events go where those of threads go
  // that are not registered.
  static bool Capture(Arena& arena, const EventSample& event, const NativeRegisters* registers) {
    bool is_nested = false;
    SampleChannel<Traits>* channel = OwnSlot(arena);
    if (channel != nullptr && TakesEvents(*channel, event.provider)) {
      is_nested = channel->is_capturing.exchange(true, std::memory_order_seq_cst);
    } else {
      channel = SharedChannel(arena, event.provider, is_nested);
    }
    if (channel == nullptr) return false;
    const SlotToken token{.arena = channel->token.arena, .index = channel->token.index};
    return ServeHere(arena, *channel, event, {.token = token, .registers = registers}, is_nested);
  }

  static Seat& SeatOf(const Slot& slot) { return *ClientPlatform::Area().At(slot.index()); }
  static Seated SeatedOf(const Slot& slot) {
    return {.registered = const_cast<Slot*>(&slot),
            .index = slot.index(),
            .thread_id = slot.thread_id(),
            .begin_ns = slot.begin_ns,
            .name = slot.name};
  }

  const std::size_t max_threads_;
  const std::size_t ring_bytes_;
  ThreadRegistry<Traits> registry_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
