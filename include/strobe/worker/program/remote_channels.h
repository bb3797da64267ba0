// RemoteChannels: the channels of a program with a worker, whatever parts have laid them out.
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
#include "strobe/worker/program/remote_platform.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Any thread may call each function. Those that make or end sessions are called one at a time.
class RemoteChannels {
 public:
  // What a worker has to know of them.
  struct Layout {
    std::uint32_t channel_bytes = 0;
    std::uint32_t cells = 0;
    std::span<const ValueType> value_types;
    std::uint64_t chunk_bytes = 0;
  };
  // A thread of the program. `registered` is what its Registration holds.
  struct Entry {
    void* registered = nullptr;
    std::uint32_t index = 0;
    std::uint64_t thread_id = 0;
    std::int64_t begin_ns = 0;
    std::string_view name;
  };

  RemoteChannels() = default;
  virtual ~RemoteChannels() = default;
  RemoteChannels(const RemoteChannels&) = delete;
  RemoteChannels& operator=(const RemoteChannels&) = delete;

  [[nodiscard]] virtual Layout layout() const = 0;
  // Makes the process's area, and finds room in it.
  virtual absl::Status Open() = 0;
  // The arena's number. After Open, as all that follows.
  [[nodiscard]] virtual std::uint8_t number() const = 0;

  // Of the calling thread.
  virtual absl::StatusOr<Entry> Register(std::string_view name, const SignalInUse& signal,
                                         const ThreadNeeds& needs) = 0;
  // Without a `registered` if the calling thread is not registered.
  [[nodiscard]] virtual Entry OfCallingThread() const = 0;
  // The registration's end begins: no session may attach the thread any more. Returns its
  // channel's number.
  virtual std::uint32_t BeginToEnd(void* registered) = 0;
  // True if that was the last one, and Orphan has been called.
  virtual bool Unregister(void* registered) = 0;
  virtual void CountRefused() = 0;
  // See ThreadRegistry.
  virtual std::size_t Orphan() = 0;

  virtual void BeginCollecting(const SamplingOptions& options) = 0;
  // Without a worker: captures end, and threads need not wait for it.
  virtual void EndCollecting() = 0;
  // No channel takes a sample any more, until a worker attaches it.
  virtual void Close() = 0;
  // Gives back the threads that the worker has settled.
  virtual void Reclaim() = 0;
  [[nodiscard]] virtual bool IsCapturing() = 0;
  // All threads that are registered, or wait for the worker.
  [[nodiscard]] virtual std::vector<Entry> All() = 0;
  virtual void AddTo(Stats& stats) = 0;

  // See AbstractCore. False in a fork's child: its parent's worker has the channels.
  virtual bool CaptureHere(const EventSample& event, const NativeRegisters* registers) noexcept = 0;
};

// The parts that run in the program: the default ones, but for the providers, on channels that a
// worker shares.
template <class ProviderList>
struct RemoteTraitsOf : DefaultTraits {
  using Providers = ProviderList;
  using Platform = RemotePlatform;
};

template <class Traits>
class ChannelsOf final : public RemoteChannels {
  static_assert(std::is_same_v<typename Traits::Platform, RemotePlatform>);

 public:
  using Arena = ChannelArena<Traits>;
  using Thread = RegisteredThread<Traits>;
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
    const std::size_t threads = max_threads_ + Arena::kSharedChannels;
    const std::size_t chunks = (threads + Arena::kChannelsPerChunk - 1) / Arena::kChannelsPerChunk;
    // Retired threads wait for the worker, so there are twice as many.
    const std::size_t room = std::min<std::size_t>(2 * chunks, Arena::kMaxChunks);
    absl::Status status = RemotePlatform::Open(
        static_cast<std::uint32_t>(room), Arena::kChannelsPerChunk, Arena::ChunkBytes(ring_bytes_));
    return status.ok() ? registry_.Open() : status;
  }
  [[nodiscard]] std::uint8_t number() const override { return registry_.arena()->number(); }

  absl::StatusOr<Entry> Register(std::string_view name, const SignalInUse& signal,
                                 const ThreadNeeds& needs) override {
    const absl::StatusOr<Thread*> thread = RegisterCallingThread(registry_, name, signal, needs);
    if (!thread.ok()) return thread.status();
    return EntryOf(**thread);
  }
  [[nodiscard]] Entry OfCallingThread() const override {
    const Thread* const thread = FindCallingThread(registry_);
    return thread != nullptr ? EntryOf(*thread) : Entry{};
  }
  std::uint32_t BeginToEnd(void* registered) override {
    Thread& thread = *static_cast<Thread*>(registered);
    thread.is_ending.store(true, std::memory_order_release);
    return thread.index();
  }
  bool Unregister(void* registered) override {
    return UnregisterCallingThread(registry_, static_cast<Thread*>(registered));
  }
  void CountRefused() override { registry_.CountRefused(); }
  std::size_t Orphan() override { return registry_.Orphan(); }

  void BeginCollecting(const SamplingOptions& options) override {
    registry_.arena()->max_frames.store(static_cast<std::uint32_t>(*options.max_frames),
                                        std::memory_order_relaxed);
    registry_.arena()->keeps_times.store(*options.timestamps, std::memory_order_relaxed);
    registry_.BeginCollecting();
    SharedAreaHeader& header = RemotePlatform::Area().header();
    for (auto& amount : header.events_brought) amount.store(0, std::memory_order_relaxed);
    for (auto& amount : header.values_exported) amount.store(0, std::memory_order_relaxed);
  }
  void EndCollecting() override {
    Close();
    registry_.EndCollecting([](Thread& thread) {
      SharedRegistrationState left = SharedRegistrationState::kLeft;
      SharedOf(thread).state.compare_exchange_strong(left, SharedRegistrationState::kFree,
                                                     std::memory_order_acq_rel);
    });
  }
  void Close() override {
    registry_.VisitAll([](Thread& thread) {
      thread.channel->open_events.store(0, std::memory_order_seq_cst);
      thread.channel->is_active.store(false, std::memory_order_seq_cst);
    });
  }
  void Reclaim() override {
    registry_.ReclaimIf([](const Thread& thread) {
      return SharedOf(thread).state.load(std::memory_order_acquire) ==
             SharedRegistrationState::kFree;
    });
  }
  [[nodiscard]] bool IsCapturing() override { return registry_.IsCapturing(); }
  [[nodiscard]] std::vector<Entry> All() override {
    std::vector<Thread*> threads;
    registry_.CopyAll(threads);
    std::vector<Entry> entry;
    entry.reserve(threads.size());
    for (const Thread* thread : threads) entry.push_back(EntryOf(*thread));
    return entry;
  }
  void AddTo(Stats& stats) override { registry_.AddTo(stats); }

  bool CaptureHere([[maybe_unused]] const EventSample& event,
                   [[maybe_unused]] const NativeRegisters* registers) noexcept override {
    if constexpr (Providers::kBringsEvents) {
      Arena* const arena = registry_.arena();
      if (arena == nullptr || !arena->IsOfThisProcess() || !Capture(*arena, event, registers))
        return false;
      SharedAreaHeader& header = RemotePlatform::Area().header();
      for (std::size_t i = 0; i < event.amounts.size(); ++i)
        header.events_brought[Providers::FirstColumn(event.provider) + i].fetch_add(
            event.amounts[i], std::memory_order_relaxed);
      return true;
    } else {
      return false;
    }
  }

 private:
  // Until the worker has seen a new thread's registration, the thread's events go where those of
  // threads go that are not registered.
  static bool Capture(Arena& arena, const EventSample& event, const NativeRegisters* registers) {
    bool is_nested = false;
    SampleChannel<Traits>* channel = OwnChannel(arena);
    if (channel != nullptr && TakesEvents(*channel, event.provider)) {
      is_nested = channel->is_capturing.exchange(true, std::memory_order_seq_cst);
    } else {
      channel = SharedChannel(arena, event.provider, is_nested);
    }
    if (channel == nullptr) return false;
    const ChannelToken token{.arena = channel->token.arena, .index = channel->token.index};
    return ServeHere(arena, *channel, event, {.token = token, .registers = registers}, is_nested);
  }

  static SharedRegistration& SharedOf(const Thread& thread) {
    return *RemotePlatform::Area().At(thread.index());
  }
  static Entry EntryOf(const Thread& thread) {
    return {.registered = const_cast<Thread*>(&thread),
            .index = thread.index(),
            .thread_id = thread.thread_id(),
            .begin_ns = thread.begin_ns,
            .name = thread.name};
  }

  const std::size_t max_threads_;
  const std::size_t ring_bytes_;
  ThreadRegistry<Traits> registry_;
};

}  // namespace internal
}  // namespace strobe
