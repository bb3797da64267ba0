// ScopedTrace: in which span of a trace the calling thread works.
//
//   strobe::ScopedTrace trace(span.trace_id(), span.span_id(), request.span_id());
#pragma once

#include <cstdint>

#include "strobe/core/sample_context.h"
#include "strobe/platform/registration_link.h"
#include "strobe/slow_span.h"

namespace strobe {

// The span of the calling thread. A registration begins with the one that the thread has.
inline TraceContext CurrentTrace() noexcept { return internal::OwnContext().trace; }

// Replaces the span of the calling thread, and returns the one before. For a tracer's function that
// is called when a span is activated on a thread, or deactivated: see src/examples/trace.cc. Costs
// a few stores; allocates nothing.
inline TraceContext ExchangeTrace(const TraceContext& trace) noexcept {
  const TraceContext before = CurrentTrace();
  internal::SetOwnTrace(trace);
  return before;
}

// Sets the span for a scope. The end of the scope restores the one before, so it must be on the
// same thread. With a threshold, it is a SlowSpan, too.
class [[nodiscard]] ScopedTrace {
 public:
  ScopedTrace(std::uint64_t trace_id, std::uint64_t span_id, std::uint64_t local_root_span_id,
              const SpanOptions& options = {}) noexcept
      : ScopedTrace(TraceContext{trace_id, span_id, local_root_span_id}, options) {}
  explicit ScopedTrace(const TraceContext& trace, const SpanOptions& options = {}) noexcept
      : span_(options.slow_over_ns), outer_(ExchangeTrace(trace)) {}
  ScopedTrace(const ScopedTrace&) = delete;
  ScopedTrace& operator=(const ScopedTrace&) = delete;
  ~ScopedTrace() { internal::SetOwnTrace(outer_); }

 private:
  SlowSpan span_;
  TraceContext outer_;
};

}  // namespace strobe
