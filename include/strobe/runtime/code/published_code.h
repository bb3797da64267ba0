// PublishedCode: the data on the loaded code that captures read.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>

#include "strobe/base/visibility.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// LoadedCode writes it while captures read it. Its address stays valid for as long as a late signal
// may arrive.
struct PublishedCode {
  // The module map that the addresses of a new record belong to.
  std::atomic<std::uint32_t> generation{0};
  // The tables that captures unwind by, or nullptr. A capture may read the tables until it ends if
  // it set is_capturing before it loaded the pointer, both sequentially consistent.
  std::atomic<const UnwindModules*> tables{nullptr};
};
// A platform whose channels lie in memory that two processes map: the one whose threads write into
// them, and the one whose collector drains them (see worker/). SharedCode() is in that memory, too.
// Signal-safe.
template <class P>
concept SharesChannels = requires {
  { P::SharedCode() } -> std::same_as<PublishedCode&>;
};
// Such a platform in the process that drains: the other one has made the channels in the memory
// that MapMemory returns. HasArea() is false if that has given the channels to another drain: what
// is in them from then on is worth nothing, but may be read and written.
template <class P>
concept AdoptsChannels = SharesChannels<P> && P::kAdoptsChannels && requires {
  { P::HasArea() } -> std::same_as<bool>;
};

static_assert(decltype(PublishedCode::generation)::is_always_lock_free);
static_assert(decltype(PublishedCode::tables)::is_always_lock_free);

}  // namespace internal
}  // namespace strobe
