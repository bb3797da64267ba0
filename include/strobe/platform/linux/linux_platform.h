// LinuxPlatform: POSIX timers on thread CPU clocks, real-time queued signals, dl_iterate_phdr. No
// OS header is needed to include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "strobe/core/label_set.h"
#include "strobe/platform/linux/linux_ending_signals.h"
#include "strobe/platform/linux/linux_signal_inbox.h"
#include "strobe/platform/linux/linux_thread_probe.h"
#include "strobe/platform/platform.h"
#include "strobe/platform/random_timer.h"

namespace strobe {

struct LinuxPlatform {
  static constexpr bool kCopiesStacks = false;
  static constexpr bool kHasFineCpuClocks = true;

  // A kernel timer's id; -1 for none.
  struct Timer {
    int id = -1;
  };
  using Instant = internal::LinuxInstant;
  using ThreadProbe = internal::LinuxThreadProbe;
  using SignalInbox = LinuxSignalInbox;
  using EndingSignals = LinuxEndingSignals;

  // A thread of the profiler: a pthread.
  using Mapping = PrivateMapping;
  class OwnThread {
   public:
    OwnThread() = default;
    OwnThread(OwnThread&& other) noexcept;
    OwnThread& operator=(OwnThread&& other) noexcept;
    ~OwnThread() = default;
    // False if the system refused to start the thread.
    [[nodiscard]] bool IsRunning() const { return is_running_; }
    // Why it has refused: an errno. 0 if it has not been asked.
    [[nodiscard]] int error() const { return error_; }
    // Waits for the thread's end. Does nothing if there is no thread.
    void Join();
    // Lets the thread run on by itself.
    void Detach();

   private:
    friend struct LinuxPlatform;
    std::uint64_t handle_ = 0;
    bool is_running_ = false;
    int error_ = 0;
  };

  static absl::Status Available();
  static ThreadInfo CurrentThread();
  static std::uint64_t CurrentThreadId();
  static std::uint64_t ProcessId();
  static std::string ProgramName();
  static std::int64_t ProcessMemoryBytes();
  // See kMachineTags.
  static LabelSet MachineTags();
  // Whether the program has more rights than the user who began it: setuid, setgid, file
  // capabilities. Its environment, arguments and working directory are then that user's choice.
  static bool HasMoreRights() noexcept;
  static std::optional<std::string> EnvironmentVariable(const char* name);
  static std::vector<std::string> EnvironmentNames(std::string_view prefix);
  static std::int64_t ThreadCpuTimeNs(std::uint64_t thread_id);
  static std::int64_t ProcessCpuTimeNs();
  static std::vector<ProgramThread> ProgramThreads();
  static std::string ThreadName(std::uint64_t thread_id);
  static std::int64_t OwnCpuTimeNs();

  static int DefaultSignal();
  static absl::Status InstallHandler(int signal);
  static HandlerState HandlerStateOf(int signal);
  static std::uint64_t BlockedSignals(std::uint64_t thread_id);
  static void SetSignalBlocked(int signal, bool is_blocked);
  static bool HoldSignalStack();
  static void ReleaseSignalStack();

  static bool StartTimer(Timer& timer, std::uint64_t thread_id, std::uint64_t payload,
                         std::int64_t first_ns, std::int64_t period_ns, int signal);
  static void StopTimer(Timer& timer);
  // By perf events. Refused for every signal but SIGURG, where the system does not allow them
  // (kernel.perf_event_paranoid above 1 without CAP_PERFMON), and under a filter of system calls.
  static bool StartRandomTimer(internal::RandomTimer& timer, std::uint64_t thread_id,
                               std::uint8_t provider, std::int64_t mean_ns, std::uint64_t seed,
                               int signal);
  static void StopRandomTimer(internal::RandomTimer& timer);
  static bool Interrupt(std::uint64_t thread_id, std::uint64_t payload, int signal,
                        bool was_running);

  static std::uint64_t ModuleVersion();
  static std::vector<Module> Modules();
  static const SymbolFiles& Files();
  static const ProfileDirectories& Directories();

  static std::size_t ReadMemory(std::uint64_t address, std::span<std::uint8_t> bytes);
  static std::size_t ReadStack(std::uint64_t address, std::span<std::uint8_t> bytes) noexcept;

  // Without a name, the thread has the calling thread's.
  static OwnThread RunOnOwnThread(const char* name, std::function<void()> body);
  static void WithOwnFiles(const std::function<void()>& body);
  static void WorkInBackground();
  static bool WakeInTime();
  static bool StayOn(int cpu);
  static int CurrentCpu();
  static std::vector<int> Cpus();
  static bool IsSaturated();
  static std::uint64_t ForkCount();
  static void FollowForks(void (*before)(), void (*in_child)());
  static bool AtExit(void (*function)());
  static void WriteLine(const std::string& text);
  static Mapping MapMemory(std::uint64_t bytes);
  static void PutIntoCores(std::span<std::byte> memory);
  static void UnmapMemory(Mapping mapping);
  static void DiscardMemory(void* memory, std::uint64_t bytes);
};
static_assert(ObservesWaits<LinuxPlatform> && ReceivesSignals<LinuxPlatform> &&
              EndsBySignals<LinuxPlatform> && HasRandomTimers<LinuxPlatform> &&
              StaysOnCpus<LinuxPlatform>);

}  // namespace strobe
