// The calling thread's registration with a profiler: how it begins, and how it ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/keep_for_ever.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/registration.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/capture_target.h"
#include "strobe/runtime/threads/registered_thread.h"
#include "strobe/runtime/threads/signal_mask.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The calling thread's registration with this registry; nullptr if it has none. Takes no lock.
template <class Traits>
RegisteredThread<Traits>* FindCallingThread(const ThreadRegistry<Traits>& registry) {
  ChannelArena<Traits>* const arena = registry.arena();
  if (arena == nullptr) return nullptr;
  for (RegistrationLink* link = RegistrationLinks(); link != nullptr; link = link->next) {
    // The arena's number is not enough: the link may belong to a registration that a fork has left
    // to the parent.
    if (link->token->arena != arena->number()) continue;
    const auto* const channel = arena->Find(link->token->index);
    if (channel != nullptr && &channel->token == link->token)
      return static_cast<RegisteredThread<Traits>*>(link);
  }
  return nullptr;
}

// What the options ask for the threads that register.
struct ThreadNeeds {
  bool may_unblock = false;  // the signal
  // A thread with less stack has an alternate one for the handler.
  std::int64_t least_stack_bytes = 0;
  bool rings_in_cores = false;

  static ThreadNeeds Of(const ProfilerOptions& options) {
    return {.may_unblock = *options.sampling.unblock_signal,
            .least_stack_bytes = *options.threads.least_stack_bytes,
            .rings_in_cores = *options.threads.rings_in_cores};
  }
};

// Of the calling thread. The kernel's frame of a signal takes up to 11 KiB, and the handler about
// as much: on a small stack there may be no room for them.
template <class Platform, class Thread>
void HoldSignalStack(Thread& thread, const StackBounds& stack, std::int64_t least_bytes) {
  if constexpr (requires { Platform::HoldSignalStack(); }) {
    thread.holds_signal_stack = !stack.empty() && !stack.grows &&
                                stack.high - stack.low < static_cast<Address>(least_bytes) &&
                                Platform::HoldSignalStack();
  }
}
template <class Platform, class Thread>
void ReleaseSignalStack(Thread& thread) {
  if constexpr (requires { Platform::ReleaseSignalStack(); }) {
    if (thread.holds_signal_stack) Platform::ReleaseSignalStack();
    thread.holds_signal_stack = false;
  }
}

// Returns a live thread, to which signals for the calling thread find their way from now on. Sees
// to what the thread needs for that. AlreadyExists if the thread is registered; ResourceExhausted
// at a limit. std::bad_alloc leaves all as it was.
template <class Traits>
absl::StatusOr<RegisteredThread<Traits>*> RegisterCallingThread(ThreadRegistry<Traits>& registry,
                                                                std::string_view name,
                                                                const SignalInUse& signal,
                                                                const ThreadNeeds& needs) {
  using Platform = typename Traits::Platform;
  using Thread = RegisteredThread<Traits>;
  if (absl::Status status = registry.Open(); !status.ok()) return status;
  if (FindCallingThread(registry) != nullptr)
    return absl::AlreadyExistsError("this thread is registered with this profiler already");
  absl::StatusOr<Thread*> thread =
      registry.Register(Platform::CurrentThread(), SanitizedThreadName(name), [&](Thread& own) {
        own.context->CopyFrom(own_context);
        CheckMask<Platform>(own, signal, needs.may_unblock);
      });
  if (!thread.ok()) return thread;
  HoldSignalStack<Platform>(**thread, Platform::CurrentThread().stack, needs.least_stack_bytes);
  if (needs.rings_in_cores) registry.arena()->PutIntoCores((*thread)->index());
  // A signal may come between any two of these stores: the list is valid after each of them.
  (*thread)->next = RegistrationLinks();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  RegistrationLinks() = *thread;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return thread;
}

// False, with a line the first time, if the registration that ends is another thread's. That thread
// stays registered: only it may take its thread out of its list. So `owner` is never deleted.
template <class Platform>
bool MayEndRegistration(std::uint64_t thread_id, const void* owner) {
  if (thread_id == Platform::CurrentThreadId()) return true;
  KeepForEver(owner);
  static constinit std::atomic<bool> is_said{false};
  if (!is_said.exchange(true, std::memory_order_relaxed)) {
    static_cast<void>(HasMemoryFor([] {
      Platform::WriteLine(
          "strobe: a Registration ended on another thread than it began on; the thread that it "
          "began on stays registered");
    }));
  }
  return false;
}

// Ends a registration of the calling thread, whose thread has been detached. Returns true if the
// thread was the last live one and the registry's owner is gone.
template <class Traits>
bool UnregisterCallingThread(ThreadRegistry<Traits>& registry, RegisteredThread<Traits>* thread) {
  using Platform = typename Traits::Platform;
  // Captures run on this thread, so none is under way. If the thread's cancellation ended a
  // capture, the flag is still set.
  if constexpr (!Platform::kCopiesStacks)
    thread->channel->is_capturing.store(false, std::memory_order_relaxed);
  RestoreMask<Platform>(*thread);
  RegistrationLink** link = &RegistrationLinks();
  while (*link != thread) link = &(*link)->next;
  *link = thread->next;
  ReleaseSignalStack<Platform>(*thread);
  return registry.Unregister(thread);
}

}  // namespace internal
}  // namespace strobe
