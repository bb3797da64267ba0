// PublishedCode: the data on the loaded code that captures read.
#pragma once

#include <atomic>
#include <cstdint>

#include "strobe/base/visibility.h"
#include "strobe/unwind/unwind_table.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// LoadedCode writes it while captures read it. Its address stays valid for as long as a late signal
// may arrive.
struct PublishedCode {
  // The module map that the addresses of a new record belong to.
  std::atomic<std::uint32_t> generation{0};
  // The tables that captures unwind by, or nullptr. A capture may read the tables until it ends if
  // it set is_capturing before it loaded the pointer, both sequentially consistent.
  std::atomic<const UnwindModules*> tables{nullptr};
};
static_assert(decltype(PublishedCode::generation)::is_always_lock_free);
static_assert(decltype(PublishedCode::tables)::is_always_lock_free);

}  // namespace strobe::internal
STROBE_HIDDEN_END
