// Next: the function that the program would have without the preloaded library.
#pragma once

#include <dlfcn.h>
#include <errno.h>

#include <atomic>

#include "strobe/base/signal_safe.h"

namespace strobe::internal {

// A constant-initialized global. The first use looks the function up, which no signal's handler may
// do.
template <class Function>
class Next {
 public:
  // Of a function that the library has several versions of, name the one that programs of today
  // link: before glibc 2.36, a name alone may find the oldest.
  explicit constexpr Next(const char* name, const char* version = nullptr)
      : name_(name), version_(version) {}
  STROBE_ALWAYS_INLINE Function* operator*() {
    Function* const function = function_.load(std::memory_order_relaxed);
    return function != nullptr ? function : Find();
  }

 private:
  [[gnu::cold]] Function* Find() {
    const int saved_errno = errno;
    void* found = version_ == nullptr ? nullptr : dlvsym(RTLD_NEXT, name_, version_);
    if (found == nullptr) found = dlsym(RTLD_NEXT, name_);
    errno = saved_errno;
    auto* const function = reinterpret_cast<Function*>(found);
    function_.store(function, std::memory_order_relaxed);
    return function;
  }

  const char* name_;
  const char* version_;
  std::atomic<Function*> function_{nullptr};
};

}  // namespace strobe::internal
