#include "strobe/runtime/control/fork_list.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "strobe/base/address.h"
#include "strobe/base/memory_guard.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/capture_target.h"
#include "strobe/platform/fork_safe_mutex.h"
#include "strobe/platform/native.h"
#include "strobe/platform/refused_thread.h"
#include "strobe/runtime/control/lock_by.h"

namespace strobe::internal {
namespace {

// `stack` is the one that the object lies on; empty if it lies elsewhere, or on the first thread's.
struct Followed {
  FollowsForks* object = nullptr;
  StackBounds stack{};
};

// Held while the list is read or changed, and by nothing that waits: forks wait for it.
constinit ForkSafeMutex<NativePlatform> fork_list_mutex;
constinit std::array<Followed, kMaxArenas> followed{};
// Held during a StartInChild, which may take long. Taken before the other one.
constinit ForkSafeMutex<NativePlatform> starts_mutex;

// Of the forking thread: whether it has noted what its child does.
constinit bool is_noted = false;

// A fork does not wait for long: a signal handler that forks may have interrupted the lock's owner.
// Unused where there are no forks.
[[maybe_unused]] void NoteBeforeFork() {
  constexpr std::chrono::milliseconds kMaxWait(100);
  std::unique_lock lock(fork_list_mutex, std::defer_lock);
  is_noted = LockBy(lock, std::chrono::steady_clock::now() + kMaxWait);
  if (!is_noted) return;
  for (const Followed& one : followed) {
    if (one.object != nullptr) one.object->NoteBeforeFork();
  }
}

void StartInChild() {
  const std::lock_guard lock(starts_mutex);
  for (const Followed& one : followed) {
    FollowsForks* object = nullptr;
    {
      const std::lock_guard list_lock(fork_list_mutex);
      object = one.object;
    }
    if (object != nullptr) object->StartInChild();
  }
}

void StartLater() {
  auto thread = NativePlatform::RunOnOwnThread("strobe-fork", [] {
    std::this_thread::sleep_for(ForkList::kLife);
    static_cast<void>(HasMemoryFor(&StartInChild));
  });
  if (const absl::Status status = StatusOfThread("threads.follow_forks", thread); !status.ok())
    NativePlatform::WriteLine("strobe: " + std::string(status.message()));
  thread.Detach();
}

// The stacks of the parent's other threads go to threads that start in the child.
void ForgetObjectsOnOtherStacks() {
  const auto here = reinterpret_cast<Address>(__builtin_frame_address(0));
  for (Followed& one : followed) {
    if (!one.stack.empty() && !one.stack.Holds(here)) one = {};
  }
}

// The child's only thread runs this, so no object comes or goes meanwhile.
[[maybe_unused]] void GoOnInChild() {
  if (!is_noted) return;
  ForgetObjectsOnOtherStacks();
  static_cast<void>(HasMemoryFor([] {
    bool will_start = false;
    for (const Followed& one : followed)
      will_start = (one.object != nullptr && one.object->GoOnInChild()) || will_start;
    if (will_start) StartLater();
  }));
}

template <class Platform>
void AskForForks() {
  if constexpr (requires { Platform::FollowForks(&NoteBeforeFork, &GoOnInChild); })
    Platform::FollowForks(&NoteBeforeFork, &GoOnInChild);
}

}  // namespace

bool ForkList::Add(FollowsForks* object) {
  AskForForks<NativePlatform>();
  StackBounds stack = NativePlatform::CurrentThread().stack;
  if (stack.grows || !stack.Holds(reinterpret_cast<Address>(object))) stack = {};
  const std::lock_guard lock(fork_list_mutex);
  auto* const place = std::ranges::find(followed, nullptr, &Followed::object);
  if (place == followed.end()) return false;
  // Another thread may fork at any moment: no child has an object without its stack.
  place->stack = stack;
  std::atomic_thread_fence(std::memory_order_release);
  place->object = object;
  return true;
}

void ForkList::AwaitStarts() { const std::lock_guard lock(starts_mutex); }

void ForkList::Remove(FollowsForks* object) {
  const std::lock_guard starts_lock(starts_mutex);
  const std::lock_guard lock(fork_list_mutex);
  std::ranges::replace(followed, object, Followed{}, &Followed::object);
}

}  // namespace strobe::internal
