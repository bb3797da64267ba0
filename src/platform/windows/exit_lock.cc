#include "exit_lock.h"

#include <windows.h>

#include "library_function.h"

namespace strobe::internal {
namespace {

// In no header, and the same since Windows NT.
using ChangeProcessLock = void(NTAPI*)();
using IsShutdownInProgress = BOOLEAN(NTAPI*)();

struct SystemFunctions {
  ChangeProcessLock acquire = nullptr;
  ChangeProcessLock release = nullptr;
  IsShutdownInProgress is_shutdown_in_progress = nullptr;

  SystemFunctions() {
    const HMODULE library = GetModuleHandleW(L"ntdll.dll");
    acquire = FindFunction<ChangeProcessLock>(library, "RtlAcquirePebLock");
    release = FindFunction<ChangeProcessLock>(library, "RtlReleasePebLock");
    is_shutdown_in_progress = FindFunction<IsShutdownInProgress>(library, "RtlDllShutdownInProgress");
  }
  [[nodiscard]] bool HaveLock() const { return acquire != nullptr && release != nullptr; }
};
const SystemFunctions& System() {
  static const SystemFunctions functions;
  return functions;
}

}  // namespace

bool ExitLock::Prepare() { return System().HaveLock(); }

ExitLock::ExitLock() {
  if (System().HaveLock()) System().acquire();
}
ExitLock::~ExitLock() {
  if (System().HaveLock()) System().release();
}

bool IsProcessEnding() {
  const IsShutdownInProgress ask = System().is_shutdown_in_progress;
  return ask != nullptr && ask() != 0;
}

}  // namespace strobe::internal
