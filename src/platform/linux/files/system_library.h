// Functions of libraries that a program need not have.
#pragma once

#include <dlfcn.h>
#include <sys/auxv.h>

// Weak, so that a static program is linked without it: there it would need the system's own C
// library at run time.
extern "C" decltype(dlopen) dlopen __attribute__((weak));
extern "C" decltype(dlsym) dlsym __attribute__((weak));

namespace strobe::internal {

// The function of that name; nullptr if the library is not on this machine, or if this program has
// no loader. The library is never unloaded.
template <class Function>
Function* FindFunction(const char* library, const char* name) {
  const bool is_static = getauxval(AT_BASE) == 0;
  if (is_static || dlopen == nullptr || dlsym == nullptr) return nullptr;
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return handle == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle, name));
}

}  // namespace strobe::internal
