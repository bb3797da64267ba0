#include "exit_lock.h"

#include <windows.h>
// After it.
#include <winternl.h>

#include <cstddef>
#include <cstring>

namespace strobe::internal {
namespace {

// In no header, and the same since Windows XP.
using LockLoader = LONG(NTAPI*)(ULONG flags, ULONG* disposition, ULONG_PTR* cookie);
using UnlockLoader = LONG(NTAPI*)(ULONG flags, ULONG_PTR cookie);
constexpr ULONG kTryOnly = 2;
constexpr ULONG kAcquired = 1;
constexpr std::size_t kLoaderLock = 0x110;  // in the process environment block, the pointer to the lock
constexpr std::size_t kOwner = offsetof(RTL_CRITICAL_SECTION, OwningThread);

struct Loader {
  LockLoader lock = nullptr;
  UnlockLoader unlock = nullptr;
  const std::byte* section = nullptr;  // the lock itself

  Loader() {
    const HMODULE library = GetModuleHandleW(L"ntdll.dll");
    lock = reinterpret_cast<LockLoader>(reinterpret_cast<void*>(GetProcAddress(library, "LdrLockLoaderLock")));
    unlock = reinterpret_cast<UnlockLoader>(reinterpret_cast<void*>(GetProcAddress(library, "LdrUnlockLoaderLock")));
    const auto current_block =
        reinterpret_cast<const void*(NTAPI*)()>(reinterpret_cast<void*>(GetProcAddress(library, "RtlGetCurrentPeb")));
    if (current_block != nullptr) std::memcpy(&section, static_cast<const std::byte*>(current_block()) + kLoaderLock, sizeof(section));
  }
  // The thread that holds the lock; 0 where that is not known, or one has been woken to take it.
  [[nodiscard]] std::uint64_t OwnerId() const {
    std::uintptr_t owner = 0;
    if (section != nullptr) std::memcpy(&owner, section + kOwner, sizeof(owner));
    return owner;
  }
};
const Loader& GlobalLoader() {
  static const Loader loader;
  return loader;
}

}  // namespace

ExitLock::ExitLock(std::uint64_t thread_id) {
  const Loader& loader = GlobalLoader();
  ULONG disposition = 0;
  ULONG_PTR cookie = 0;
  if (loader.lock != nullptr && loader.unlock != nullptr && loader.lock(kTryOnly, &disposition, &cookie) == 0 && disposition == kAcquired) {
    cookie_ = cookie;
    may_stop_ = true;
  } else {
    const std::uint64_t owner = loader.OwnerId();
    may_stop_ = owner != 0 && owner != thread_id;
  }
}

ExitLock::~ExitLock() {
  if (cookie_ != 0) GlobalLoader().unlock(0, cookie_);
}

}  // namespace strobe::internal
