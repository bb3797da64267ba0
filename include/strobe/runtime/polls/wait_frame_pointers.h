// WaitFramePointers: the frame pointers that a thread has had at places where it waited.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A place where a thread waits, as seen from outside. The frame pointer is missing there: a walk
// without it ends at a frame that needs it.
struct WaitPlace {
  Address pc = 0;
  Address sp = 0;
  Address frame = 0;  // the code address of that frame

  friend bool operator==(const WaitPlace&, const WaitPlace&) = default;
};

// Of one thread. Used by the collector.
//
// A thread that waits at the same place again has the same frame pointer, unless a function whose
// frame has no fixed size led there. So a frame pointer counts only if it leads to the same caller
// as before.
class WaitFramePointers {
 public:
  // A thread rarely waits at more places that need one. Beyond this, those that were learned first
  // are forgotten.
  static constexpr std::size_t kMaxPlaces = 32;

  struct Known {
    WaitPlace place;
    Address fp = 0;
    Address caller = 0;  // the code address of the frame's caller; 0 until Confirm
  };

  // nullptr if nothing is known of the place. Valid until the next Answer.
  [[nodiscard]] const Known* Find(const WaitPlace& place) const {
    const auto found =
        std::ranges::find_if(known_, [&](const Known& known) { return known.place == place; });
    return found == known_.end() ? nullptr : &*found;
  }

  // The thread is interrupted in order to learn its frame pointer there. Its CPU clock reads
  // `cpu_ns`.
  void Request(const WaitPlace& place, std::int64_t cpu_ns) {
    requested_ = place;
    requested_cpu_ns_ = cpu_ns;
  }
  // The stack pointer of the place; 0 if no request is open.
  [[nodiscard]] Address requested_sp() const { return requested_.sp; }
  // A capture has found these registers when the CPU clock read `cpu_ns`. Learns the frame pointer
  // if that answers the request: replaces what was known of the place.
  void Answer(std::int64_t cpu_ns, Address sp, Address fp) {
    if (requested_ == WaitPlace() || cpu_ns < requested_cpu_ns_) return;
    if (sp == requested_.sp) *Room(requested_) = {.place = requested_, .fp = fp, .caller = 0};
    requested_ = {};
  }
  // A walk with the place's frame pointer has led to that caller.
  void Confirm(const WaitPlace& place, Address caller) {
    if (const Known* known = Find(place); known != nullptr)
      known_[static_cast<std::size_t>(known - known_.data())].caller = caller;
  }

 private:
  Known* Room(const WaitPlace& place) {
    const Known* const old = Find(place);
    return &known_[old != nullptr ? static_cast<std::size_t>(old - known_.data())
                                  : next_++ % kMaxPlaces];
  }

  std::array<Known, kMaxPlaces> known_{};
  std::size_t next_ = 0;
  WaitPlace requested_;
  std::int64_t requested_cpu_ns_ = 0;
};

}  // namespace internal
}  // namespace strobe
