#include "strobe/runtime/control/fork_list.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>

#include "strobe/base/memory_guard.h"
#include "strobe/platform/capture_target.h"
#include "strobe/platform/fork_safe_mutex.h"
#include "strobe/platform/native.h"

namespace strobe::internal {
namespace {

constinit ForkSafeMutex<NativePlatform> fork_list_mutex;
constinit std::array<GoesOnInChild*, kMaxArenas> followed{};
constinit bool follows_forks = false;

// Calls function(object) for each of the list.
template <class Function>
void VisitFollowed(const Function& function) {
  const std::lock_guard lock(fork_list_mutex);
  for (GoesOnInChild* const object : followed) {
    if (object != nullptr) function(*object);
  }
}

// The forking thread is the child's only one.
void GoOnInChild() {
  static_cast<void>(HasMemoryFor([] {
    bool has_any = false;
    VisitFollowed([&](GoesOnInChild& object) {
      has_any = true;
      object.RegisterInChild();
    });
    if (!has_any) return;
    auto thread = NativePlatform::RunOnOwnThread("strobe-fork", [] {
      std::this_thread::sleep_for(ForkList::kLife);
      static_cast<void>(HasMemoryFor(
          [] { VisitFollowed([](GoesOnInChild& object) { object.StartInChild(); }); }));
    });
    thread.Detach();
  }));
}

}  // namespace

bool ForkList::Add(GoesOnInChild* object) {
  const std::lock_guard lock(fork_list_mutex);
  auto* const place = std::ranges::find(followed, nullptr);
  if (!follows_forks) follows_forks = NativePlatform::AtForkInChild(&GoOnInChild);
  if (!follows_forks || place == followed.end()) return false;
  *place = object;
  return true;
}

void ForkList::Remove(GoesOnInChild* object) {
  const std::lock_guard lock(fork_list_mutex);
  std::ranges::replace(followed, object, static_cast<GoesOnInChild*>(nullptr));
}

}  // namespace strobe::internal
