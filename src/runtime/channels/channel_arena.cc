#include "strobe/runtime/channels/channel_arena.h"

#include <array>
#include <atomic>

#include "strobe/platform/capture_target.h"

namespace strobe::internal {
namespace {

// The next number. The upper bits are the fork count of the process that the numbers belong to.
constexpr int kCountShift = 8;
static_assert(kMaxArenas < (1U << kCountShift));
constinit std::atomic<std::uint64_t> next_arena_number{0};

// By number: the arena, while it is unused. An arena of a fork's parent stays in its place until
// its number is given out again.
struct UnusedArena {
  std::atomic<void*> arena{nullptr};
  std::atomic<const void*> type{nullptr};
  std::atomic<std::uint64_t> fork_count{0};
};
constinit std::array<UnusedArena, kMaxArenas> unused_arenas{};

}  // namespace

int AcquireArenaNumber(std::uint64_t fork_count) {
  std::uint64_t last = next_arena_number.load(std::memory_order_relaxed);
  while (true) {
    const bool is_parents = last >> kCountShift < fork_count;
    const std::uint64_t next = is_parents ? fork_count << kCountShift : last;
    const auto number = static_cast<std::size_t>(next & ((1U << kCountShift) - 1));
    if (number == kMaxArenas) return -1;
    if (next_arena_number.compare_exchange_weak(last, next + 1, std::memory_order_relaxed))
      return static_cast<int>(number);
  }
}

void* TakeUnusedArena(const void* type, std::uint64_t fork_count) {
  for (UnusedArena& unused : unused_arenas) {
    void* arena = unused.arena.load(std::memory_order_acquire);
    if (arena == nullptr || unused.type.load(std::memory_order_relaxed) != type) continue;
    if (unused.fork_count.load(std::memory_order_relaxed) != fork_count) continue;
    if (unused.arena.compare_exchange_strong(arena, nullptr, std::memory_order_acquire))
      return arena;
  }
  return nullptr;
}

void KeepUnusedArena(std::uint8_t number, void* arena, const void* type, std::uint64_t fork_count) {
  UnusedArena& unused = unused_arenas[number];
  unused.type.store(type, std::memory_order_relaxed);
  unused.fork_count.store(fork_count, std::memory_order_relaxed);
  unused.arena.store(arena, std::memory_order_release);
}

}  // namespace strobe::internal
