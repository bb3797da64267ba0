// Functions of the system's libraries that are in no header, or not in every Windows.
#pragma once

#include <windows.h>

namespace strobe::internal {

// Function is a pointer to it; nullptr where the library, or there the name, is missing. Waits for
// the loader's lock.
template <class Function>
Function FindFunction(HMODULE library, const char* name) {
  return library == nullptr
             ? nullptr
             : reinterpret_cast<Function>(reinterpret_cast<void*>(GetProcAddress(library, name)));
}

}  // namespace strobe::internal
