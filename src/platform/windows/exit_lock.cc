#include "exit_lock.h"

#include <windows.h>
// These need windows.h before them.
#include <winternl.h>

#include "library_function.h"

namespace strobe::internal {
namespace {

// No header declares this. It is the same since Windows NT.
using FindBlock = PEB*(NTAPI*)();
using IsShutdownInProgress = BOOLEAN(NTAPI*)();
constexpr int kMaxTries = 20;  // to get the lock

struct SystemFunctions {
  CRITICAL_SECTION* lock = nullptr;
  IsShutdownInProgress is_shutdown_in_progress = nullptr;

  SystemFunctions() {
    const HMODULE library = GetModuleHandleW(L"ntdll.dll");
    const auto block = FindFunction<FindBlock>(library, "RtlGetCurrentPeb");
    if (block != nullptr)
      lock = static_cast<CRITICAL_SECTION*>(block()->Reserved4[2]);  // FastPebLock
    is_shutdown_in_progress =
        FindFunction<IsShutdownInProgress>(library, "RtlDllShutdownInProgress");
  }
};
const SystemFunctions& System() {
  static const SystemFunctions functions;
  return functions;
}

}  // namespace

bool ExitLock::Prepare() { return System().lock != nullptr; }

ExitLock::ExitLock() {
  for (int tries = 0; System().lock != nullptr && !is_held_ && tries < kMaxTries; ++tries) {
    if (tries > 0) SwitchToThread();
    is_held_ = TryEnterCriticalSection(System().lock) != 0;
  }
}
ExitLock::~ExitLock() {
  if (is_held_) LeaveCriticalSection(System().lock);
}

bool IsProcessEnding() {
  const IsShutdownInProgress ask = System().is_shutdown_in_progress;
  return ask != nullptr && ask() != 0;
}

}  // namespace strobe::internal
