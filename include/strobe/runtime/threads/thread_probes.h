// ThreadProbes: the collector's probes of registered threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/runtime/threads/registered_thread.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Of one session. Used by the collector. A probe is made at its first use, because most threads are
// never observed.
template <class Traits>
class ThreadProbes {
 public:
  using Thread = RegisteredThread<Traits>;
  using Probe = typename Traits::Platform::ThreadProbe;

  // The probe of an attached thread.
  Probe& Of(const Thread& thread) {
    const std::size_t index = thread.index();
    if (index >= places_.size()) places_.resize(index + 1);
    Place& place = places_[index];
    if (!place.probe || place.use != thread.channel->token.use) {
      place.use = thread.channel->token.use;
      place.probe.emplace(thread.thread_id());
    }
    return *place.probe;
  }

  // Ends the probe of a thread whose registration has ended.
  void Forget(const Thread& thread) {
    const std::size_t index = thread.index();
    if (index < places_.size()) places_[index].probe.reset();
  }

 private:
  struct Place {
    std::uint16_t use = 0;  // of the thread
    std::optional<Probe> probe;
  };

  std::vector<Place> places_;  // by the thread's index
};

}  // namespace internal
}  // namespace strobe
