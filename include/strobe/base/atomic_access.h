// Atomic access to a word that is not a std::atomic: a member of a class that is copied, or a word
// that the kernel shares. libc++ has std::atomic_ref only since its version 19.
#pragma once

#include <atomic>
#include <concepts>
#include <type_traits>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A word whose accesses need no lock and no call.
template <class T>
concept AtomicWord = std::integral<T> && std::atomic<T>::is_always_lock_free;

// All accesses of a word that may happen at the same time must be by these two. `word` has its
// type's natural alignment.
template <AtomicWord T>
[[nodiscard]] STROBE_SIGNAL_SAFE T AtomicLoad(const T& word, std::memory_order order) {
  return __atomic_load_n(&word, static_cast<int>(order));
}

template <AtomicWord T>
STROBE_SIGNAL_SAFE void AtomicStore(T& word, std::type_identity_t<T> value,
                                    std::memory_order order) {
  __atomic_store_n(&word, value, static_cast<int>(order));
}

}  // namespace internal
}  // namespace strobe
