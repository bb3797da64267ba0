// PublishedCode: what captures know of the code that is loaded.
#pragma once

#include <atomic>
#include <cstdint>

#include "strobe/base/visibility.h"
#include "strobe/unwind/unwind_table.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Written by LoadedCode while captures read it. It stays where it is for as long as a late signal
// may arrive.
struct PublishedCode {
  // Which map of modules the addresses of a record belong to.
  std::atomic<std::uint32_t> generation{0};
  // What stacks are walked by, or nullptr. A capture may read them until it ends if it has loaded
  // the pointer after it has said that it is under way, both sequentially consistent.
  std::atomic<const UnwindModules*> tables{nullptr};
};
static_assert(decltype(PublishedCode::generation)::is_always_lock_free);
static_assert(decltype(PublishedCode::tables)::is_always_lock_free);

}  // namespace strobe::internal
STROBE_HIDDEN_END
