// RemotePlatform: the native platform of a program whose channels lie in a SharedArea.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/runtime/code/published_code.h"
#include "strobe/worker/shared/shared_area.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

struct RemotePlatform : LinuxPlatform {
  static constexpr bool kAdoptsChannels = false;

  // A process has at most one area, for as long as it lives. Makes it at the first call; a later
  // one needs the same layout. In a fork's child, the area is the parent's, and a new one is made.
  static absl::Status Open(std::uint32_t chunks, std::uint32_t chunk_channels,
                           std::uint64_t chunk_bytes);
  // Valid after Open.
  static const SharedArea& Area();

  // The area's next chunk. Empty if it has none of that size.
  static Mapping MapMemory(std::uint64_t bytes);
  // From now on captures know of no code, until the next worker shows them tables. Returns which of
  // SharedAreaHeader::codes is that worker's.
  static std::size_t BeginCode();
  // In the area. Before Open, one that says that nothing is known.
  STROBE_SIGNAL_SAFE static PublishedCode& SharedCode() noexcept;
};
static_assert(SharesChannels<RemotePlatform> && !AdoptsChannels<RemotePlatform>);

}  // namespace internal
}  // namespace strobe
