// Next: the function that the program would have without the preloaded library.
#pragma once

#include <dlfcn.h>

#include <atomic>

#include "strobe/base/signal_safe.h"

namespace strobe::internal {

// A constant-initialized global. The first use looks the function up, which no signal's handler may
// do.
template <class Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  STROBE_ALWAYS_INLINE Function* operator*() {
    Function* const function = function_.load(std::memory_order_relaxed);
    return function != nullptr ? function : Find();
  }

 private:
  [[gnu::cold]] Function* Find() {
    auto* const function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
    function_.store(function, std::memory_order_relaxed);
    return function;
  }

  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

}  // namespace strobe::internal
