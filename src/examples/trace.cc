// Traces: profiles say in which span the time was used. A tracer that calls a function when it
// activates a span on a thread, and when it deactivates the span, needs no other change.
#include <strobe/strobe.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

volatile std::uint64_t sink = 0;

void Work() {
  for (std::uint64_t i = 0; i < 300'000'000; ++i) sink = sink * 31 + i;
}

// Stands for a tracer: it keeps a stack of active spans for each thread.
class Tracer {
 public:
  struct Span {
    std::uint64_t trace_id;
    std::uint64_t span_id;
  };
  // Called with the thread's active span, or nullptr, and its outermost one.
  using Hook = void (*)(const Span* active, const Span* root);

  explicit Tracer(Hook hook) : hook_(hook) {}
  void Activate(const Span& span) {
    Spans().push_back(span);
    Report();
  }
  void Deactivate() {
    Spans().pop_back();
    Report();
  }

 private:
  static std::vector<Span>& Spans() {
    thread_local std::vector<Span> spans;
    return spans;
  }
  void Report() {
    const std::vector<Span>& spans = Spans();
    spans.empty() ? hook_(nullptr, nullptr) : hook_(&spans.back(), &spans.front());
  }

  const Hook hook_;
};

// All that connects a tracer with the profiler. With OpenTelemetry, a RuntimeContextStorage that
// wraps the program's own calls this in Attach and in Detach; of its trace ids of 16 bytes, the
// last eight are taken.
void TellStrobe(const Tracer::Span* active, const Tracer::Span* root) {
  if (active == nullptr) {
    strobe::ExchangeTrace({});
  } else {
    strobe::ExchangeTrace({.trace_id = active->trace_id,
                           .span_id = active->span_id,
                           .local_root_span_id = root->span_id});
  }
}

}  // namespace

int main() {
  // The program is short, so the budget must not make its samples few.
  strobe::Profiler profiler({.sampling = {.max_overhead = 1}});
  auto registration = profiler.RegisterThread("main");
  strobe::ScopedProfiler session(profiler);

  Tracer tracer(&TellStrobe);
  tracer.Activate({.trace_id = 0x1234, .span_id = 0xA1});
  Work();
  tracer.Activate({.trace_id = 0x1234, .span_id = 0xB2});
  Work();
  tracer.Deactivate();
  tracer.Deactivate();

  {
    strobe::ScopedTrace trace(0x5678, 0xC3, 0xC3);  // without a tracer
    Work();
  }
  std::printf("trace left on main: %d\n", strobe::CurrentTrace().empty() ? 0 : 1);
}
