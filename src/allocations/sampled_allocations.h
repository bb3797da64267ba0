// What the allocation functions do besides allocating: they count bytes. Data plane.
#pragma once

#include <cstddef>
#include <optional>

#include "strobe/allocations/live_blocks.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/provider/amount_sampler.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Of the calling thread. In the program's own static block of thread-local storage, which exists as
// long as the thread, and is never allocated by the functions that are sampled.
extern constinit thread_local AmountSampler allocation_sampler
    __attribute__((tls_model("initial-exec")));

// Records an allocation for which Count has returned true. Returns `block`, which is nullptr if the
// allocation failed. The caller is the allocation function itself, by no tail call. errno stays as
// it is.
[[gnu::noinline]] void* TakeAllocation(void* block, std::size_t size) noexcept;

// A static table, of which zero bytes are an empty one. To evaluate the constructors of all its
// elements would take more steps than Clang allows in a constant.
template <class Table>
struct ZeroedTable {
  alignas(Table) unsigned char bytes[sizeof(Table)]{};

  Table& operator*() noexcept { return *reinterpret_cast<Table*>(bytes); }
  Table* operator->() noexcept { return reinterpret_cast<Table*>(bytes); }
};

// The sampled blocks that have not been freed.
extern constinit ZeroedTable<LiveBlocks<>> live_blocks;

// Removes a block that may be among them, and returns what it stood for.
[[gnu::noinline]] std::optional<LiveBlock> ForgetBlock(const void* block) noexcept;
// Puts it back: it was not freed.
[[gnu::noinline]] void RememberBlock(const void* block, const LiveBlock& content) noexcept;

// Notes that a block is about to be freed; nullptr is none.
STROBE_ALWAYS_INLINE void NoteFree(const void* block) noexcept {
  if (live_blocks->MayHold(block)) [[unlikely]]
    static_cast<void>(ForgetBlock(block));
}

}  // namespace internal
}  // namespace strobe
