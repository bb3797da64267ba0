// UnsupportedPlatform: an OS or CPU that cannot be profiled yet, or a build with -Denabled=false.
// Everything compiles, nothing samples, and Start says why.
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

struct UnsupportedPlatform {
  static constexpr bool kCopiesStacks = false;
  static constexpr bool kHasFineCpuClocks = true;

  struct Timer {};
  struct Instant {};
  struct ThreadProbe {
    explicit ThreadProbe(std::uint64_t /*thread_id*/) {}
    ThreadPoll Poll() { return ThreadPoll::kHasNotRun; }
    bool WasDisplaced(const Instant& /*instant*/) { return false; }
    [[nodiscard]] std::int64_t seen_cpu_ns() const { return -1; }
    std::int64_t WaitCount() { return -1; }
  };
  using Mapping = PrivateMapping;
  struct OwnThread {
    [[nodiscard]] bool IsRunning() const { return false; }
    [[nodiscard]] int error() const { return 0; }
    void Join() {}
    void Detach() {}
  };

  static absl::Status Available();
  static ThreadInfo CurrentThread() { return {}; }
  static std::uint64_t CurrentThreadId() { return 0; }
  static std::uint64_t ProcessId() { return 0; }
  static std::string ProgramName() { return "program"; }
  static std::optional<std::string> EnvironmentVariable(const char* name);
  static std::vector<std::string> EnvironmentNames(std::string_view /*prefix*/) { return {}; }
  static std::int64_t ThreadCpuTimeNs(std::uint64_t /*thread_id*/) { return -1; }
  static std::int64_t ProcessCpuTimeNs() { return -1; }
  static std::vector<ProgramThread> ProgramThreads() { return {}; }
  static std::string ThreadName(std::uint64_t /*thread_id*/) { return {}; }
  static std::int64_t OwnCpuTimeNs() { return 0; }
  static int DefaultSignal() { return 0; }
  static absl::Status InstallHandler(int /*signal*/) { return Available(); }
  static HandlerState HandlerStateOf(int /*signal*/) { return HandlerState::kNotInstalled; }
  static bool StartTimer(Timer& /*timer*/, std::uint64_t /*thread_id*/, std::uint64_t /*payload*/,
                         std::int64_t /*first_ns*/, std::int64_t /*period_ns*/, int /*signal*/) {
    return false;
  }
  static void StopTimer(Timer& /*timer*/) {}
  static bool Interrupt(std::uint64_t /*thread_id*/, std::uint64_t /*payload*/, int /*signal*/,
                        bool /*was_running*/) {
    return false;
  }
  static std::uint64_t ModuleVersion() { return 0; }
  static std::vector<Module> Modules() { return {}; }
  // Those of a known system with another CPU; else none.
  static const SymbolFiles& Files();
  static const ProfileDirectories& Directories();
  static std::size_t ReadMemory(std::uint64_t /*address*/, std::span<std::uint8_t> /*bytes*/) {
    return 0;
  }
  static std::size_t ReadStack(std::uint64_t /*address*/,
                               std::span<std::uint8_t> /*bytes*/) noexcept {
    return 0;
  }
  static OwnThread RunOnOwnThread(const char* /*name*/, const std::function<void()>& /*body*/) {
    return {};
  }
  static std::uint64_t ForkCount() { return 0; }
  static bool AtExit(void (* /*function*/)()) { return false; }
  static void WriteLine(const std::string& text);
  static Mapping MapMemory(std::uint64_t /*bytes*/) { return {}; }
  static void UnmapMemory(Mapping /*mapping*/) {}
  static void DiscardMemory(void* /*memory*/, std::uint64_t /*bytes*/) {}
};
static_assert(Platform<UnsupportedPlatform>);

}  // namespace strobe
