// WindowsPlatform: Windows for x64. The collector stops a thread, copies its registers and its
// stack, and resumes it before it unwinds. No OS header is needed to include it.
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
#include "strobe/platform/platform.h"

namespace strobe {

// Windows has no timers on threads' CPU clocks, so StartTimer refuses, and threads are sampled at
// random instants. Signals have no meaning here.
struct WindowsPlatform {
  static constexpr bool kCopiesStacks = true;
  static constexpr bool kHasFineCpuClocks = false;

  struct Timer {};
  struct Instant {};
  // A thread that has run in the last 100 ms is taken to run: Interrupt finds out whether it does.
  class ThreadProbe {
   public:
    explicit ThreadProbe(std::uint64_t thread_id) : thread_id_(thread_id) {}
    ThreadPoll Poll();
    bool WasDisplaced(const Instant& /*instant*/) { return false; }
    [[nodiscard]] std::int64_t seen_cpu_ns() const { return seen_cpu_ns_; }
    std::int64_t WaitCount() { return -1; }

   private:
    std::uint64_t thread_id_;
    std::int64_t seen_cpu_ns_ = -1;
    std::uint64_t ran_at_ms_ = 0;  // when that was new
  };

  // A thread of the profiler: a handle.
  using Mapping = PrivateMapping;
  class OwnThread {
   public:
    OwnThread() = default;
    OwnThread(OwnThread&& other) noexcept;
    OwnThread& operator=(OwnThread&& other) noexcept;
    ~OwnThread() = default;
    // False if the system refused to start the thread.
    [[nodiscard]] bool IsRunning() const { return handle_ != nullptr; }
    // Why it has refused: an errno. 0 if it has not been asked.
    [[nodiscard]] int error() const { return error_; }
    // Waits for the thread's end. Does nothing if there is no thread.
    void Join();
    // Lets the thread run on by itself.
    void Detach();

   private:
    friend struct WindowsPlatform;
    void* handle_ = nullptr;
    int error_ = 0;
  };

  static absl::Status Available();
  static ThreadInfo CurrentThread();
  static std::uint64_t CurrentThreadId();
  static std::uint64_t ProcessId();
  static std::string ProgramName();
  static std::optional<std::string> EnvironmentVariable(const char* name);
  static std::vector<std::string> EnvironmentNames(std::string_view prefix);
  static std::int64_t ThreadCpuTimeNs(std::uint64_t thread_id);
  static std::int64_t ProcessCpuTimeNs();
  static std::int64_t ProcessMemoryBytes();
  static std::vector<ProgramThread> ProgramThreads();
  static std::string ThreadName(std::uint64_t thread_id);
  static std::int64_t OwnCpuTimeNs();

  static int DefaultSignal() { return 0; }
  static absl::Status InstallHandler(int signal);
  static HandlerState HandlerStateOf(int /*signal*/) { return HandlerState::kOurs; }

  static bool StartTimer(Timer& /*timer*/, std::uint64_t /*thread_id*/, std::uint64_t /*payload*/,
                         std::int64_t /*first_ns*/, std::int64_t /*period_ns*/, int /*signal*/) {
    return false;
  }
  static void StopTimer(Timer& /*timer*/) {}
  static bool Interrupt(std::uint64_t thread_id, std::uint64_t payload, int signal,
                        bool was_running);

  static std::uint64_t ModuleVersion();
  static std::vector<Module> Modules();
  static const SymbolFiles& Files();
  static const ProfileDirectories& Directories();

  static std::size_t ReadMemory(std::uint64_t address, std::span<std::uint8_t> bytes);
  static std::size_t ReadStack(std::uint64_t address, std::span<std::uint8_t> bytes) noexcept;

  // Uses a timer of high resolution if this Windows has them. Without one, a sleep is rounded to
  // the system's tick of 15.6 ms.
  static void SleepNs(std::int64_t time_ns);
  static OwnThread RunOnOwnThread(const char* name, std::function<void()> body);
  static std::uint64_t ForkCount() { return 0; }
  // Always false: when a DLL's functions run at exit, all other threads have been killed already.
  static bool AtExit(void (* /*function*/)()) { return false; }
  static void WriteLine(const std::string& text);
  static Mapping MapMemory(std::uint64_t bytes);
  static void UnmapMemory(Mapping mapping);
  static void DiscardMemory(void* memory, std::uint64_t bytes);
};
static_assert(Platform<WindowsPlatform>);

}  // namespace strobe
