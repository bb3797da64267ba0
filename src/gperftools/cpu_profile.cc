#include "cpu_profile.h"

#include <sys/prctl.h>

#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "../platform/linux/held_by_thread.h"
#include "../platform/own_threads.h"
#include "strobe/base/memory_guard.h"
#include "variables.h"

namespace strobe::internal {
namespace {

constexpr std::int64_t kMaxFrequencyHz = 4000;
constexpr double kDefaultFrequencyHz = 100;
// The longest period that there is: the file has the sum of all periods.
constexpr double kSessionPeriodS = 86'400;

strobe::ProfilerOptions OptionsOfCpuProfile() {
  strobe::ProfilerOptions options;
  options.exporter.period_s = kSessionPeriodS;
  options.worker.enabled = false;
  options.threads.follow_forks = false;  // a child calls ProfilerStart
  const std::optional<std::int64_t> frequency_hz =
      NumberVariable("CPUPROFILE_FREQUENCY", 1, kMaxFrequencyHz);
  if (IsVariableSet("CPUPROFILE_REALTIME")) {
    options.sampling.cpu_frequency_hz = 0;
    options.sampling.wall_frequency_hz =
        frequency_hz ? std::min<double>(static_cast<double>(*frequency_hz), 1000)
                     : kDefaultFrequencyHz;
  } else if (frequency_hz) {
    options.sampling.cpu_frequency_hz = static_cast<double>(*frequency_hz);
  }
  return options;
}

const HeldByThread<Registration>& HeldRegistrations() {
  static const HeldByThread<Registration> held = [] {
    HeldByThread<Registration> made;
    static_cast<void>(made.Begin());  // without room, no thread is registered
    return made;
  }();
  return held;
}

}  // namespace

CpuProfile::CpuProfile()
    : profiler_(OptionsOfCpuProfile(), {.exporter = SessionFileExporter(file_)}) {}

CpuProfile& CpuProfile::OfProcess() {
  static auto* const profile = new CpuProfile;
  return *profile;
}

absl::Status CpuProfile::Start(const std::string& path, SampleFilter::Function filter,
                               void* argument) {
  const std::lock_guard lock(mutex_);
  if (IsRunning()) return absl::FailedPreconditionError("a profile is under way");
  if (absl::Status status = WriteWholeFile(path, ""); !status.ok()) return status;
  file_->Begin({.path = NativePlatform::Directories().AbsolutePath(path),
                .drops_empty_stacks = filter != nullptr});
  SampleFilter::argument.store(argument);
  SampleFilter::function.store(filter);
  RegisterForCpuProfile();
  taken_before_ = SampleFilter::taken.load();
  if (absl::Status status = profiler_.Start(); !status.ok()) return status;
  start_time_ = std::time(nullptr);
  forks_ = NativePlatform::ForkCount();
  return absl::OkStatus();
}

absl::Status CpuProfile::Stop() {
  const std::lock_guard lock(mutex_);
  if (!IsRunning()) return absl::OkStatus();
  start_time_ = 0;
  return profiler_.Stop();
}

absl::Status CpuProfile::Flush() {
  const std::lock_guard lock(mutex_);
  return IsRunning() ? profiler_.Flush() : absl::OkStatus();
}

CpuProfile::State CpuProfile::state() {
  const std::lock_guard lock(mutex_);
  if (!IsRunning()) return {};
  return {.is_running = true,
          .start_time = start_time_,
          .path = file_->Get()->path(),
          .samples = SampleFilter::taken.load() - taken_before_};
}

void RegisterForCpuProfile() noexcept {
  if (IsOnOwnThread<NativePlatform>()) return;
  const int saved_errno = errno;
  static_cast<void>(HasMemoryFor([] {
    std::array<char, 16> name{};
    prctl(PR_GET_NAME, name.data());
    Registration registration = CpuProfile::OfProcess().RegisterThread(name.data());
    if (!registration.status().ok()) return;
    // In a fork's child, the held registration is the parent's: it does nothing, and its end too.
    HeldRegistrations().Hold(std::move(registration));
  }));
  errno = saved_errno;
}

}  // namespace strobe::internal
