// ThreadContext: what a thread is doing, as a capture of the thread reads it.
#pragma once

#include <atomic>
#include <cstdint>

#include "strobe/core/label_set.h"

namespace strobe {

// Words in a thread's channel. The thread itself writes them. A capture reads them on the same
// thread, in a signal handler, or on another thread while this one is stopped.
struct ThreadContext {
  // The number, in ProcessLabels, of the labels that the thread has set.
  std::atomic<std::uint64_t> labels{kNoContext};
};

}  // namespace strobe
