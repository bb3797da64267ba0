// A profiler with events, in the least program that has one: what handler_gate.py looks at.
#include <array>

#include <strobe/own_parts.h>

namespace {

struct Events {
  static constexpr bool kBringsEvents = true;
  static constexpr std::array kValueTypes{strobe::ValueType{"events", "count"}};
  explicit Events(const strobe::SamplingOptions& /*options*/) {}
  [[nodiscard]] bool enabled() const { return true; }
};
struct EventTraits : strobe::DefaultTraits {
  using Providers = strobe::ProviderList<strobe::CpuTimeProvider, Events>;
};

}  // namespace

int main() {
  strobe::BasicProfiler<EventTraits> profiler;
  auto registration = profiler.RegisterThread("main");
  strobe::BasicScopedProfiler session(profiler);
  return profiler.CaptureHere<Events>({1}) ? 0 : 1;
}
