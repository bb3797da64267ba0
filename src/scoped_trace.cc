#include "strobe/scoped_trace.h"

#include "strobe/platform/capture_target.h"

namespace strobe {

TraceContext CurrentTrace() noexcept { return internal::OwnContext().trace; }

TraceContext ExchangeTrace(const TraceContext& trace) noexcept {
  return internal::ExchangeOwnTrace(trace);
}

}  // namespace strobe
