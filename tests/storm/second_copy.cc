// A library with a copy of Strobe, like a plug-in of another team: the second copy in the storm's
// process. It profiles its calling thread, which the storm's own copy profiles at the same time.
#include <memory>
#include <string>

#include "kept_profiles.h"

namespace strobe {

// This copy has hidden visibility, so it compiles its profiler for itself.
template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::KeepingTraits>();

}  // namespace strobe

namespace strobe::testing {
namespace {

// In calls of other libraries and of its own.
void Work() {
  for (int i = 0; i < 10; ++i) {
    BurnCpu(1'000'000);
    const std::string text(4096, 'x');
    asm volatile("" : : "r"(text.data()) : "memory");
  }
}

const char* ProfileCaller() {
  static auto* const profiler = new KeepingProfiler(
      ProfilerOptions{.sampling = {.cpu_frequency_hz = 1000}, .exporter = {.stop_timeout_s = 60}});
  if (!profiler->Start().ok()) return "the second copy does not start";
  const CpuBounds bounds = RunRegistered(*profiler, "second copy", &Work);
  if (bounds.low_ns < 0) return "the second copy refuses the thread";
  if (!profiler->Stop().ok()) return "the second copy does not stop";
  const std::int64_t cpu_ns = SumByName(KeptProfiles::Take(), "cpu")["second copy"];
  return cpu_ns >= bounds.low_ns && cpu_ns <= bounds.high_ns
             ? nullptr
             : "the second copy's profile does not add up to the clock";
}

}  // namespace
}  // namespace strobe::testing

// Profiles one session of the calling thread. Null where the profile adds up to what the thread's
// clock says, else what is wrong.
extern "C" [[gnu::visibility("default")]] const char* StormSecondCopyRun() {
  return strobe::testing::ProfileCaller();
}
