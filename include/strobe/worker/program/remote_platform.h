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
  // Gives the area to the next worker, whose number this returns. No other has it: see TakeBack.
  // From now on captures know of no code, until that worker shows them tables.
  static std::uint32_t BeginWorker();
  // In the area. Before Open, one that says that nothing is known.
  STROBE_SIGNAL_SAFE static PublishedCode& SharedCode() noexcept;
};
static_assert(SharesChannels<RemotePlatform> && !AdoptsChannels<RemotePlatform>);

}  // namespace internal
}  // namespace strobe
