// gperftools' functions for CPU profiles, and what its variables begin when the program is loaded.
#include "strobe/gperftools/profiler.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "cpu_profile.h"
#include "strobe/base/memory_guard.h"
#include "strobe/platform/native.h"
#include "strobe/runtime/control/session_toggle.h"
#include "variables.h"

namespace strobe::internal {
namespace {

constexpr std::int64_t kMaxSignal = 64;

void WriteCpuProblem(const std::string& what, const absl::Status& status) {
  NativePlatform::WriteLine(absl::StrCat("strobe: ", what, ": ", status.message()));
}

// Runs `body`, whose status becomes a line: true if it is OK.
template <class Body>
bool CallCpuProfile(const char* what, const Body& body) noexcept {
  absl::Status status;
  if (!HasMemoryFor([&] { status = body(); })) status = OutOfMemory();
  if (!status.ok()) static_cast<void>(HasMemoryFor([&] { WriteCpuProblem(what, status); }));
  return status.ok();
}

bool StartCpuProfile(const char* path, const ::ProfilerOptions* options) noexcept {
  if (path == nullptr) return false;
  absl::Status status;
  const auto start = [&] {
    status = CpuProfile::OfProcess().Start(
        path, options != nullptr ? options->filter_in_thread : nullptr,
        options != nullptr ? options->filter_in_thread_arg : nullptr);
    if (!status.ok())
      WriteCpuProblem(absl::StrCat("can't turn on cpu profiling for '", path, "'"), status);
  };
  return HasMemoryFor(start) && status.ok();
}

// Each signal begins or ends a session, whose files are path.0, path.1, ...
class CpuProfileSwitch {
 public:
  CpuProfileSwitch(int signal, std::string path)
      : path_(std::move(path)), toggle_("CPUPROFILESIGNAL", signal, [this] { Toggle(); }) {}

  [[nodiscard]] const absl::Status& status() const { return toggle_.status(); }

 private:
  void Toggle() {
    if (ProfilingIsEnabledForAllThreads() != 0) return ProfilerStop();
    static_cast<void>(
        HasMemoryFor([this] { ProfilerStart(absl::StrCat(path_, ".", session_++).c_str()); }));
  }

  const std::string path_;
  unsigned session_ = 0;
  SessionToggle<NativePlatform> toggle_;
};

void BeginByVariables() {
  RegisterForCpuProfile();
  const std::optional<std::string> path = UniquePath("CPUPROFILE");
  if (!path) return;
  if (!IsVariableSet("CPUPROFILESIGNAL")) {
    ProfilerStart(path->c_str());
    return;
  }
  const auto signal = NumberVariable("CPUPROFILESIGNAL", 1, kMaxSignal);
  if (!signal) return;
  // Lives as long as the process.
  static const auto* const cpu_switch = new CpuProfileSwitch(static_cast<int>(*signal), *path);
  if (!cpu_switch->status().ok()) WriteCpuProblem("a signal does nothing", cpu_switch->status());
}

// The main thread's.
__attribute__((constructor)) void BeginCpuProfile() {
  static_cast<void>(HasMemoryFor(&BeginByVariables));
}

}  // namespace
}  // namespace strobe::internal

using strobe::internal::CallCpuProfile;
using strobe::internal::CpuProfile;

int ProfilerStart(const char* fname) { return ProfilerStartWithOptions(fname, nullptr); }

int ProfilerStartWithOptions(const char* fname, const struct ProfilerOptions* options) {
  return strobe::internal::StartCpuProfile(fname, options) ? 1 : 0;
}

void ProfilerStop() {
  CallCpuProfile("the cpu profile was not written", [] { return CpuProfile::OfProcess().Stop(); });
}

void ProfilerFlush() {
  CallCpuProfile("the cpu profile was not written", [] { return CpuProfile::OfProcess().Flush(); });
}

void ProfilerEnable() {}
void ProfilerDisable() {}

int ProfilingIsEnabledForAllThreads() {
  bool is_running = false;
  const bool has_memory = strobe::internal::HasMemoryFor(
      [&] { is_running = CpuProfile::OfProcess().state().is_running; });
  return has_memory && is_running ? 1 : 0;
}

void ProfilerRegisterThread() { strobe::internal::RegisterForCpuProfile(); }

void ProfilerGetCurrentState(struct ProfilerState* state) {
  *state = {};
  static_cast<void>(strobe::internal::HasMemoryFor([state] {
    const CpuProfile::State now = CpuProfile::OfProcess().state();
    state->enabled = now.is_running ? 1 : 0;
    state->start_time = now.start_time;
    state->samples_gathered = now.samples;
    const std::size_t size = std::min(now.path.size(), sizeof(state->profile_name) - 1);
    std::memcpy(state->profile_name, now.path.data(), size);
    const void* const taken = &strobe::internal::SampleFilter::taken;
    if (size + 1 + sizeof(taken) <= sizeof(state->profile_name))
      std::memcpy(state->profile_name + size + 1, &taken, sizeof(taken));
  }));
}
