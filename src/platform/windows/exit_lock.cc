#include "exit_lock.h"

#include <windows.h>

#include "library_function.h"

namespace strobe::internal {
namespace {

// In no header, and the same since Windows XP.
using LockLoader = LONG(NTAPI*)(ULONG flags, ULONG* disposition, ULONG_PTR* cookie);
using UnlockLoader = LONG(NTAPI*)(ULONG flags, ULONG_PTR cookie);
using IsShutdownInProgress = BOOLEAN(NTAPI*)();
constexpr ULONG kTryOnly = 2;
constexpr ULONG kAcquired = 1;

struct Loader {
  LockLoader lock = nullptr;
  UnlockLoader unlock = nullptr;
  IsShutdownInProgress is_shutdown_in_progress = nullptr;

  Loader() {
    const HMODULE library = GetModuleHandleW(L"ntdll.dll");
    lock = FindFunction<LockLoader>(library, "LdrLockLoaderLock");
    unlock = FindFunction<UnlockLoader>(library, "LdrUnlockLoaderLock");
    is_shutdown_in_progress = FindFunction<IsShutdownInProgress>(library, "RtlDllShutdownInProgress");
  }
};
const Loader& GlobalLoader() {
  static const Loader loader;
  return loader;
}

}  // namespace

void ExitLock::Prepare() { GlobalLoader(); }

ExitLock::ExitLock() {
  const Loader& loader = GlobalLoader();
  ULONG disposition = 0;
  ULONG_PTR cookie = 0;
  if (loader.lock != nullptr && loader.unlock != nullptr && loader.lock(kTryOnly, &disposition, &cookie) == 0 && disposition == kAcquired) {
    cookie_ = cookie;
  }
}

ExitLock::~ExitLock() {
  if (cookie_ != 0) GlobalLoader().unlock(0, cookie_);
}

bool IsProcessEnding() {
  const Loader& loader = GlobalLoader();
  return loader.is_shutdown_in_progress != nullptr && loader.is_shutdown_in_progress() != 0;
}

}  // namespace strobe::internal
