#include "strobe/platform/capture_target.h"

#include <array>
#include <cstdint>

namespace strobe::internal {
namespace {

// Zero-initialised and without a destructor: a signal may read the entries before main and while
// the program ends.
constinit std::array<CaptureEntry, kMaxArenas> capture_entries{};
constinit HandlerCounters handler_counters;

// In the thread's static block: the handler must not cause the allocation of thread-local storage.
#if defined(__GNUC__) || defined(__clang__)
__attribute__((tls_model("initial-exec")))
#endif
constinit thread_local ThreadLink* thread_links = nullptr;

#if defined(__GNUC__) || defined(__clang__)
__attribute__((tls_model("initial-exec")))
#endif
constinit thread_local ThreadContext own_context;

}  // namespace

const char copy_anchor = 0;

CaptureEntry& CaptureEntryOf(std::size_t arena) { return capture_entries[arena]; }
ThreadLink*& ThreadLinks() { return thread_links; }

SampleContext OwnContext() { return own_context.Read(); }

std::uint64_t ExchangeOwnLabels(std::uint64_t number) {
  for (const ThreadLink* link = thread_links; link != nullptr; link = link->next)
    link->context->SetLabels(number);
  const std::uint64_t before = own_context.Read().labels;
  own_context.SetLabels(number);
  return before;
}

TraceContext ExchangeOwnTrace(const TraceContext& trace) {
  const TraceContext before = own_context.Read().trace;
  own_context.SetTrace(trace);
  for (const ThreadLink* link = thread_links; link != nullptr; link = link->next)
    link->context->SetTrace(trace);
  return before;
}

HandlerCounters& GlobalHandlerCounters() { return handler_counters; }

}  // namespace strobe::internal
