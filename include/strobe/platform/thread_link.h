// ThreadLink: what the calling thread is doing, and its slots, which have copies of that. Inline,
// because a tracer changes the thread's span often.
#pragma once

#include <cstdint>

#include "strobe/base/visibility.h"
#include "strobe/core/sample_context.h"
#include "strobe/platform/random_timer.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

struct SlotToken;

// A registered thread's slots, innermost registration first. The kernel drops the payload of a
// signal that it queues at the limit on pending signals; such a signal finds its slots here.
struct ThreadLink {
  ThreadLink* next = nullptr;
  const SlotToken* token = nullptr;  // in the slot
  // Whether a request awaits this thread. Signal-safe.
  bool (*is_awaited)(const ThreadLink& link) = nullptr;
  ThreadContext* context = nullptr;  // in the slot's channel
  RandomTimer random_timer;
};

// In the thread's static block: the handler must not cause the allocation of thread-local storage.
// `constinit` spares each use a call that would initialise them.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadLink* thread_links;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadContext own_context;

inline ThreadLink*& ThreadLinks() { return thread_links; }

// What the calling thread is doing. A registration begins with it.
inline SampleContext OwnContext() noexcept { return own_context.Read(); }

// Changes a part of that, here and in all of the calling thread's channels.
template <class Change>
void ChangeOwnContext(const Change& change) noexcept {
  change(own_context);
  for (const ThreadLink* link = thread_links; link != nullptr; link = link->next)
    change(*link->context);
}
inline void SetOwnLabels(std::uint64_t number) noexcept {
  ChangeOwnContext([&](ThreadContext& context) { context.SetLabels(number); });
}
inline void BeginOwnSpan(SpanNumber span, std::int64_t slow_at_ns) noexcept {
  ChangeOwnContext([&](ThreadContext& context) { context.BeginSpan(span, slow_at_ns); });
}
inline void EndOwnSpan() noexcept {
  ChangeOwnContext([](ThreadContext& context) { context.EndSpan(); });
}
inline void SetOwnTrace(const TraceContext& trace) noexcept {
  ChangeOwnContext([&](ThreadContext& context) { context.SetTrace(trace); });
}

}  // namespace strobe::internal
STROBE_HIDDEN_END
