// Functions of the system's libraries that no header declares, or that some Windows do not have.
#pragma once

#include <windows.h>

namespace strobe::internal {

// Returns a pointer to the function; nullptr if there is no such library or no such name in it.
// Waits for the loader's lock.
template <class Function>
Function FindFunction(HMODULE library, const char* name) {
  return library == nullptr
             ? nullptr
             : reinterpret_cast<Function>(reinterpret_cast<void*>(GetProcAddress(library, name)));
}

}  // namespace strobe::internal
