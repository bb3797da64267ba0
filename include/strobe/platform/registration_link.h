// RegistrationLink: what the calling thread is doing, and its channels, which have copies of that.
// Inline, because a tracer changes the thread's span often.
#pragma once

#include <cstdint>

#include "strobe/base/visibility.h"
#include "strobe/core/sample_context.h"
#include "strobe/platform/random_timer.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

struct ChannelToken;

// A registered thread's channels, innermost registration first. The kernel drops the payload of a
// signal that it queues at the limit on pending signals; such a signal finds its channels here.
struct RegistrationLink {
  RegistrationLink* next = nullptr;
  const ChannelToken* token = nullptr;  // in the channel
  // Whether a request awaits this thread. Signal-safe.
  bool (*is_awaited)(const RegistrationLink& link) = nullptr;
  ThreadContext* context = nullptr;  // in the channel
  RandomTimer random_timer;
};

// In the thread's static block: the handler must not cause the allocation of thread-local storage.
// `constinit` spares each use a call that would initialise them.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local RegistrationLink* thread_links;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadContext own_context;

inline RegistrationLink*& RegistrationLinks() { return thread_links; }

// What the calling thread is doing. A registration begins with it.
inline SampleContext OwnContext() noexcept { return own_context.Read(); }

// Changes a part of that, here and in all of the calling thread's channels.
template <class Change>
void ChangeOwnContext(const Change& change) noexcept {
  change(own_context);
  for (const RegistrationLink* link = thread_links; link != nullptr; link = link->next)
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

}  // namespace internal
}  // namespace strobe
