// The contract of a platform: everything that the runtime asks of an operating system. To port the
// profiler is to write one such type (see include/strobe/README.md).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "strobe/core/module_map.h"
#include "strobe/core/thread_info.h"

namespace strobe {

class ProfileDirectories;
class SymbolFiles;

// Whether interruptions reach us.
enum class HandlerState : std::uint8_t { kNotInstalled, kOurs, kReplaced };

// How the memory that MapMemory returns is aligned, at least: to the smallest page of any system.
inline constexpr std::size_t kMappingAlignment = 4096;

// The Mapping of a platform whose memory no other process can map.
struct PrivateMapping {
  std::span<std::byte> bytes;
};

// All functions are static. Control plane, from any thread, unless marked.
// * kCopiesStacks: whether Interrupt stops the thread from outside, and captures from a copy of its
//   stack before it returns; and not a handler that runs on the thread.
// * Available(): why profiling cannot work here at all; OK where it can.
// * CurrentThread(): the calling thread's id and stack. Cheap after a thread's first call.
// * CurrentThreadId(), ProcessId(), ProgramName().
// * EnvironmentVariable(name): its value, if it is set; in UTF-8 where the system keeps characters
//   and not bytes.
// * ThreadCpuTimeNs(id): the CPU clock of a thread of this process, or -1. Data plane too, for the
//   calling thread.
// * ProcessCpuTimeNs(): that of all threads of this process, ended ones too, by the same clock, or
//   -1.
// * DefaultSignal(): a signal that the program does not use, as things are now.
// * InstallHandler(signal): installs the interruption handler, once for each signal. The handler is
//   never uninstalled, because a late signal would then meet its default action.
//   HandlerStateOf(signal): asks the system.
// * BlockedSignals(thread), where it is there: those that the thread blocks, signal n by bit n - 1;
//   0 where the system does not say. Cheap for the calling thread. SetSignalBlocked(signal,
//   is_blocked) then: for the calling thread.
// * StartTimer(timer, thread, payload, first_ns, period_ns, signal), StopTimer(timer): a timer on
//   the thread's CPU clock; false where refused.
// * Interrupt(thread, payload, signal): interrupts a thread now, with that payload; false where it
//   is gone.
// * ModuleVersion(): changes whenever an image is loaded or unloaded. Modules(): what is loaded
//   now, the program first.
// * ReadMemory(address, bytes): copies this process's memory; returns how many bytes could be read,
//   from the front. Never faults.
// * ReadStack(address, bytes): the same for the data plane, by one call to the system.
// * Files(): what a symbolizer asks of the system (symbolize/symbol_files.h). Lives for ever.
// * Directories(): what an exporter of files asks of the system (export/profile_directories.h).
//   Lives for ever.
// * RunOnOwnThread(name, body): starts a thread that blocks all signals; the caller joins it. Not
//   running where the system refused. Its stack, priority and CPUs do not depend on the caller's.
// * WorkInBackground(), where it is there: from now on the calling thread, an own one, has less
//   claim to the CPUs than the program.
// * SleepNs(time_ns), where it is there: waits more precisely than a condition variable does there.
// * ForkCount(): a number that is another, and higher, in a fork's child than in its parent. Cheap:
//   asked at each use of a Profiler. Does not allocate after a process's first call.
// * AtExit(function): calls it, on whatever thread, when the program exits, before what was
//   constructed earlier is destroyed, and while all threads still run. False where it cannot be
//   had.
// * WriteLine(text): one line on the program's standard error.
// * MapMemory(bytes): a Mapping of zeroed memory that is committed when touched, aligned to
//   kMappingAlignment; its `bytes` are empty where refused. The handle is what a platform needs to
//   share the memory with another process; it may be copied. UnmapMemory(mapping) gives it back.
// * DiscardMemory(memory, bytes): the same state again for a part of it, but for the zeroes: what
//   it holds is not needed any more.
template <class P>
concept Platform = std::default_initializable<typename P::Timer> &&
    std::default_initializable<typename P::OwnThread> && std::movable<typename P::OwnThread> &&
    std::default_initializable<typename P::Mapping> && std::copyable<typename P::Mapping> &&
    requires(typename P::Timer& timer, typename P::OwnThread& own_thread, std::uint64_t number,
             typename P::Mapping mapping, std::int64_t time_ns, int signal,
             std::span<std::uint8_t> bytes, std::span<std::byte> stack_bytes,
             std::function<void()> body, const char* text, void* memory, void (*function)()) {
  { P::kCopiesStacks } -> std::convertible_to<bool>;
  { P::Available() } -> std::same_as<absl::Status>;
  { P::CurrentThread() } -> std::same_as<ThreadInfo>;
  { P::CurrentThreadId() } -> std::same_as<std::uint64_t>;
  { P::ProcessId() } -> std::same_as<std::uint64_t>;
  { P::ProgramName() } -> std::same_as<std::string>;
  { P::EnvironmentVariable(text) } -> std::same_as<std::optional<std::string>>;
  { P::ThreadCpuTimeNs(number) } -> std::same_as<std::int64_t>;
  { P::ProcessCpuTimeNs() } -> std::same_as<std::int64_t>;
  { P::DefaultSignal() } -> std::same_as<int>;
  { P::InstallHandler(signal) } -> std::same_as<absl::Status>;
  { P::HandlerStateOf(signal) } -> std::same_as<HandlerState>;
  { P::StartTimer(timer, number, number, time_ns, time_ns, signal) } -> std::same_as<bool>;
  { P::StopTimer(timer) } -> std::same_as<void>;
  { P::Interrupt(number, number, signal) } -> std::same_as<bool>;
  { P::ModuleVersion() } -> std::same_as<std::uint64_t>;
  { P::Modules() } -> std::same_as<std::vector<Module>>;
  { P::Files() } -> std::same_as<const SymbolFiles&>;
  { P::Directories() } -> std::same_as<const ProfileDirectories&>;
  { P::ReadMemory(number, bytes) } -> std::same_as<std::size_t>;
  { P::ReadStack(number, stack_bytes) }
  noexcept->std::same_as<std::size_t>;
  { P::RunOnOwnThread(text, body) } -> std::same_as<typename P::OwnThread>;
  { own_thread.IsRunning() } -> std::same_as<bool>;
  { own_thread.Join() } -> std::same_as<void>;
  { own_thread.Detach() } -> std::same_as<void>;
  { P::ForkCount() } -> std::same_as<std::uint64_t>;
  { P::AtExit(function) } -> std::same_as<bool>;
  { P::WriteLine(std::string()) } -> std::same_as<void>;
  { P::MapMemory(number) } -> std::same_as<typename P::Mapping>;
  { mapping.bytes } -> std::convertible_to<std::span<std::byte>>;
  { P::UnmapMemory(mapping) } -> std::same_as<void>;
  { P::DiscardMemory(memory, number) } -> std::same_as<void>;
};

}  // namespace strobe
