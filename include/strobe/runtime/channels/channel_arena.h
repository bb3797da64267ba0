// ChannelArena: type-stable storage of channels, and of all other data that a late signal may still
// touch.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "strobe/base/keep_for_ever.h"
#include "strobe/base/page.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/capture_target.h"
#include "strobe/runtime/channels/sample_channel.h"
#include "strobe/runtime/code/published_code.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Each arena has a number, over all traits types: its place in the static table that the handler
// reads. At most kMaxArenas exist at a time. With another Platform::ForkCount the numbers begin
// anew: a fork's child leaves its parent's arenas behind. These functions take no lock, because a
// thread of the parent may hold it.
int AcquireArenaNumber(std::uint64_t fork_count);  // -1 when all are taken
// TakeUnusedArena returns an arena of that type that KeepUnusedArena has set aside, or nullptr.
void* TakeUnusedArena(const void* type, std::uint64_t fork_count);
void KeepUnusedArena(std::uint8_t number, void* arena, const void* type, std::uint64_t fork_count);

// Each channel has a ring and a memo. kChannelsPerChunk channels lie in one mapping: first the
// channels, then the memos, then the rings.
template <class Traits>
class ChannelArena {
 public:
  using Channel = SampleChannel<Traits>;
  using Platform = typename Traits::Platform;
  using Mapping = typename Platform::Mapping;
  static constexpr std::size_t kChannelsPerChunk = 64;  // one word of marks
  static constexpr std::size_t kMaxChunks = 4096;
  static_assert(kMaxChunks * kChannelsPerChunk <= std::size_t{1} << ChannelToken::kIndexBits);
  // The first channels of an arena, for all threads that are not registered together: each of them
  // has one while it brings an event. 0 if no provider has events.
  static constexpr std::uint32_t kSharedChannels = Traits::Providers::kBringsEvents ? 8 : 0;
  // A type can assert only this much of "a block of bytes without addresses". A test checks that
  // there is no address in it.
  static_assert(std::is_standard_layout_v<Channel> && std::is_trivially_destructible_v<Channel>);

  // Returns an unused arena, or a new one; nullptr if kMaxArenas are in use. Arenas are kept for
  // ever and reused, because a signal of an ended Profiler may still be on its way. Where the
  // channels are another process's, no signal leads to them: an arena lasts as long as its owner.
  static ChannelArena* Acquire(std::size_t ring_bytes) {
    const std::uint64_t fork_count = Platform::ForkCount();
    if constexpr (AdoptsChannels<Platform>) {
      auto* const own = new ChannelArena(fork_count);
      own->ring_bytes_ = ring_bytes;
      return own;
    }
    auto* arena = static_cast<ChannelArena*>(TakeUnusedArena(&type_, fork_count));
    if (arena == nullptr) {
      // Allocates before it takes a number: a number would be lost if memory ran out.
      std::unique_ptr<ChannelArena> own(new ChannelArena(fork_count));
      const int number = AcquireArenaNumber(fork_count);
      if (number < 0) return nullptr;
      own->number_ = static_cast<std::uint8_t>(number);
      arena = own.release();
      KeepForEver(arena);
    }
    arena->ring_bytes_ = ring_bytes;
    return arena;
  }

  // No channel may be in use.
  static void Release(ChannelArena* arena) {
    if constexpr (AdoptsChannels<Platform>) {
      delete arena;
      return;
    }
    KeepUnusedArena(arena->number_, arena, &type_, arena->fork_count_);
  }

  // The channel of that index, or nullptr. Signal-safe.
  STROBE_SIGNAL_SAFE Channel* Find(std::uint32_t index) noexcept {
    if (index >= kMaxChunks * kChannelsPerChunk) return nullptr;
    Channel* const channels = chunks_[index / kChannelsPerChunk].load(std::memory_order_acquire);
    return channels == nullptr ? nullptr : &channels[index % kChannelsPerChunk];
  }

  // Returns the channels of a chunk; makes the chunk if it does not exist. Empty if that fails.
  // Requires the registry's mutex. None of the channels may be in use.
  //
  // A mapping that captures may use is never unmapped. If its rings are too small now, the chunk
  // gets a new mapping. Ring sizes are powers of two, so that there are few old mappings, and these
  // keep only their channels in memory.
  std::span<Channel> Channels(std::size_t chunk) {
    if (chunk >= kMaxChunks) return {};
    Channel* const old = chunks_[chunk].load(std::memory_order_relaxed);
    if (old != nullptr && RingRoom(*old) >= ring_bytes_) return {old, kChannelsPerChunk};
    if (chunk >= mappings_.size()) mappings_.resize(chunk + 1);
    const Mapping mapping = Platform::MapMemory(ChunkBytes(ring_bytes_));
    const std::span<std::byte> memory = mapping.bytes;
    if (memory.empty()) return {};
    for (std::size_t i = 0; i < kChannelsPerChunk && !AdoptsChannels<Platform>; ++i) {
      auto& channel = *new (memory.data() + i * sizeof(Channel)) Channel;
      const auto index = static_cast<std::uint32_t>(chunk * kChannelsPerChunk + i);
      channel.token = {.arena = number_, .provider = 0, .use = 0, .index = index};
      // Continues the use count, so that a signal of an earlier use is still late.
      if (old != nullptr) channel.token.use = old[i].token.use;
      channel.memo_distance = static_cast<std::uint32_t>(MemoDistance(i) - i * sizeof(Channel));
      channel.ring_room_bytes = static_cast<std::uint32_t>(ring_bytes_);
    }
    if (old != nullptr) {
      KeepForEver(old);
      const std::span<std::byte> left = mappings_[chunk].bytes;
      Platform::DiscardMemory(left.data() + kChannelsBytes, left.size() - kChannelsBytes);
    }
    auto* const channels = std::launder(reinterpret_cast<Channel*>(memory.data()));
    chunks_[chunk].store(channels, std::memory_order_release);
    mappings_[chunk] = mapping;
    memory_bytes_ += kChannelsBytes;
    return {channels, kChannelsPerChunk};
  }

  // Core dumps have the chunk of this channel, which a thread has, from now on.
  void PutIntoCores(std::uint32_t index) {
    if constexpr (requires { Platform::PutIntoCores(std::span<std::byte>()); }) {
      Channel* const first = Find(index - index % kChannelsPerChunk);
      Platform::PutIntoCores({reinterpret_cast<std::byte*>(first), ChunkBytes(RingRoom(*first))});
    }
  }

  // What a chunk of channels with such rings takes.
  static constexpr std::size_t ChunkBytes(std::size_t ring_bytes) {
    return RingsDistance(kChannelsPerChunk, ring_bytes);
  }

  // The mapping that the channel lies in. Requires the registry's mutex.
  [[nodiscard]] const Mapping& MappingOf(const Channel& channel) const {
    return mappings_[channel.token.index / kChannelsPerChunk];
  }

  // The functions of the collector take a channel's index, which must exist, and find memory by it
  // alone: another process may write what stands in the channel.
  //
  // The memory of the channel's ring, committed when touched.
  std::span<std::byte> RingMemory(std::uint32_t index) const {
    const Channel* const first = FirstOf(index);
    return {BytesOf(first) + RingsDistance(index % kChannelsPerChunk, RingRoom(*first)),
            ring_bytes_};
  }

  // True if the channel has memory that may be given back: captures have used the channel, but none
  // since the last call.
  static bool IsLongIdle(Channel& channel) {
    const std::uint32_t captures = channel.counters.captures.load(std::memory_order_relaxed);
    if (channel.counters.seen_captures.exchange(captures, std::memory_order_relaxed) == captures)
      return channel.holds_memory();
    channel.has_memory.store(true, std::memory_order_relaxed);
    return false;
  }

  // Gives back the memory of the channel's ring and memo that captures have touched. No capture may
  // be under way or begin, and the ring must be empty.
  void Discard(std::uint32_t index) {
    Channel& channel = FirstOf(index)[index % kChannelsPerChunk];
    if (!channel.holds_memory()) return;
    const std::span<std::byte> ring = RingMemory(index);
    Platform::DiscardMemory(ring.data(), ring.size());
    Platform::DiscardMemory(BytesOf(FirstOf(index)) + MemoDistance(index % kChannelsPerChunk),
                            kMemoBytes);
    channel.ring.Reset(ring);
    channel.memo_is_stale.store(true, std::memory_order_relaxed);
    channel.counters.seen_captures.store(channel.counters.captures.load(std::memory_order_relaxed),
                                         std::memory_order_relaxed);
    channel.has_memory.store(false, std::memory_order_relaxed);
  }

  // Marks the channel: its ring has a record. Signal-safe.
  STROBE_SIGNAL_SAFE static void Mark(Channel& channel) noexcept {
    const std::uint32_t i = channel.token.index % kChannelsPerChunk;
    (&channel - i)->marks.fetch_or(std::uint64_t{1} << i, std::memory_order_release);
  }

  // The same for the collector, which has left a record in the ring.
  void MarkAgain(std::uint32_t index) noexcept {
    FirstOf(index)->marks.fetch_or(MarkOf(index), std::memory_order_release);
  }
  // Clears the mark of a channel that no capture uses any more.
  void Unmark(std::uint32_t index) noexcept {
    FirstOf(index)->marks.fetch_and(~MarkOf(index), std::memory_order_acquire);
  }

  // Calls visit(chunk, marks) for each chunk with channels that were marked since the last call.
  template <class Visitor>
  void VisitMarks(Visitor&& visit) {
    for (std::size_t i = 0; i < kMaxChunks; ++i) {
      Channel* const first = chunks_[i].load(std::memory_order_acquire);
      if (first == nullptr) return;
      if (first->marks.load(std::memory_order_relaxed) == 0) continue;
      visit(i, first->marks.exchange(0, std::memory_order_acquire));
    }
  }

  // Calls visit(channel) for each channel, live or not. Needs neither memory nor a lock.
  template <class Visitor>
  void VisitAll(Visitor&& visit) {
    for (std::size_t i = 0; i < kMaxChunks; ++i) {
      Channel* const first = chunks_[i].load(std::memory_order_acquire);
      if (first == nullptr) return;
      for (Channel& channel : std::span(first, kChannelsPerChunk)) visit(channel);
    }
  }

  [[nodiscard]] std::uint8_t number() const { return number_; }
  // Returns false in a fork's child, whose copy of the arena no collector drains. Signal-safe.
  [[nodiscard]] STROBE_SIGNAL_SAFE bool IsOfThisProcess() const noexcept {
    return Platform::ProcessId() == process_id_;
  }
  // The memory that is in use even without samples.
  [[nodiscard]] std::size_t memory_bytes() const { return sizeof(*this) + memory_bytes_; }
  [[nodiscard]] std::size_t ring_bytes() const { return ring_bytes_; }

  // What captures need besides their channel. max_frames and keeps_times are written while no
  // channel is active. LoadedCode keeps code() current.
  std::atomic<std::uint32_t> max_frames{0};
  std::atomic<bool> keeps_times{false};  // see SamplingOptions::timestamps
  [[nodiscard]] STROBE_SIGNAL_SAFE PublishedCode& code() const noexcept {
    if constexpr (SharesChannels<Platform>) {
      return Platform::SharedCode();
    } else {
      return code_;
    }
  }

 private:
  // Whole pages of most systems, so that each part can be given back by itself.
  static constexpr std::size_t kMemoBytes = RoundUpToPages(sizeof(WalkMemo));
  static constexpr std::size_t kChannelsBytes = RoundUpToPages(kChannelsPerChunk * sizeof(Channel));
  static inline constinit char type_ = 0;  // its address names the traits type

  explicit ChannelArena(std::uint64_t fork_count) : fork_count_(fork_count) {}

  static constexpr std::uint64_t MarkOf(std::uint32_t index) {
    return std::uint64_t{1} << index % kChannelsPerChunk;
  }
  // The distance from a chunk's begin to the memo of its channel `i`.
  static constexpr std::size_t MemoDistance(std::size_t i) {
    return kChannelsBytes + i * kMemoBytes;
  }
  // The distance from a chunk's begin to the ring of its channel `i`.
  static constexpr std::size_t RingsDistance(std::size_t i, std::size_t ring_room_bytes) {
    return MemoDistance(kChannelsPerChunk) + i * ring_room_bytes;
  }
  // The memory reserved for each ring of the channel's chunk. Where another process has made the
  // channel, all rings have the same.
  [[nodiscard]] std::size_t RingRoom(const Channel& channel) const {
    return AdoptsChannels<Platform> ? ring_bytes_ : channel.ring_room_bytes;
  }
  // The first channel of the channel's chunk.
  [[nodiscard]] Channel* FirstOf(std::uint32_t index) const {
    return chunks_[index / kChannelsPerChunk].load(std::memory_order_acquire);
  }
  static std::byte* BytesOf(const Channel* first) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(first));
  }

  mutable PublishedCode code_;
  std::uint8_t number_ = 0;
  const std::uint64_t fork_count_;
  const std::uint64_t process_id_ = Platform::ProcessId();
  std::size_t ring_bytes_ = 0;
  std::size_t memory_bytes_ = 0;                            // of all channels
  std::vector<Mapping> mappings_;                           // of the chunks
  std::array<std::atomic<Channel*>, kMaxChunks> chunks_{};  // by its first channel
};

}  // namespace internal
}  // namespace strobe
