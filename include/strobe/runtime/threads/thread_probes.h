// ThreadProbes: the collector's probes of registered threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/runtime/threads/registered_thread.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Of one session. Used by the collector. A probe is made at its first use, because most threads are
// never observed.
template <class Traits>
class ThreadProbes {
 public:
  using Slot = RegisteredThread<Traits>;
  using Probe = typename Traits::Platform::ThreadProbe;

  // The probe of an attached slot's thread.
  Probe& Of(const Slot& slot) {
    const std::size_t index = slot.index();
    if (index >= places_.size()) places_.resize(index + 1);
    Place& place = places_[index];
    if (!place.probe || place.use != slot.channel->token.use) {
      place.use = slot.channel->token.use;
      place.probe.emplace(slot.thread_id());
    }
    return *place.probe;
  }

  // Ends the probe of a slot whose registration has ended.
  void Forget(const Slot& slot) {
    const std::size_t index = slot.index();
    if (index < places_.size()) places_[index].probe.reset();
  }

 private:
  struct Place {
    std::uint16_t use = 0;  // of the slot
    std::optional<Probe> probe;
  };

  std::vector<Place> places_;  // by the slot's index
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
