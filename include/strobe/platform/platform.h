// The contract of a platform: everything that the runtime asks of an operating system. To port the
// profiler is to write one such type (see src/docs/howto/porting.md).
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
#include "strobe/core/memory_reader.h"
#include "strobe/core/module_map.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/random_timer.h"

namespace strobe {

class ProfileDirectories;
class SymbolFiles;

// Whether the handler that InstallHandler installed still gets the signal.
enum class HandlerState : std::uint8_t { kNotInstalled, kOurs, kReplaced };

// In place of a CPU's number: any that the process may use.
inline constexpr int kAnyCpu = -1;

// The least alignment of memory from MapMemory: the smallest page of any system.
inline constexpr std::size_t kMappingAlignment = 4096;

// The Mapping of a platform whose memory no other process can map.
struct PrivateMapping {
  std::span<std::byte> bytes;
};

// What a Platform says of threads and their CPU clocks: see there.
template <class P>
concept TellsOfThreads = requires(std::uint64_t number) {
  { P::CurrentThread() } -> std::same_as<ThreadInfo>;
  { P::CurrentThreadId() } -> std::same_as<std::uint64_t>;
  { P::ThreadCpuTimeNs(number) } -> std::same_as<std::int64_t>;
  { P::ProcessCpuTimeNs() } -> std::same_as<std::int64_t>;
  { P::ProgramThreads() } -> std::same_as<std::vector<ProgramThread>>;
  { P::ThreadName(number) } -> std::same_as<std::string>;
  { P::OwnCpuTimeNs() } -> std::same_as<std::int64_t>;
};

// All functions are static. Control plane, from any thread, unless marked.
// * kCopiesStacks: true if Interrupt stops the thread, and captures from a copy of its stack before
//   it returns. False if a handler on the thread captures.
// * Available(): OK, or the reason why profiling cannot work here.
// * CurrentThread(): the calling thread's id and stack. Cheap after a thread's first call.
// * CurrentThreadId(), ProcessId(), ProgramName().
// * ProcessMemoryBytes(), optional: the resident memory of this process; -1 if it is not known.
// * MachineTags(), optional: labels of kMachineTags, for the profiles of the session that starts.
// * EnvironmentVariable(name): its value, if it is set. In UTF-8 where the system's values are
//   characters and not bytes. EnvironmentNames(prefix): the names of the variables that begin so.
//   A program with more rights than its user has no environment.
// * kHasFineCpuClocks: true if CPU clocks advance whenever their threads run, not by ticks.
// * ThreadCpuTimeNs(id): the CPU clock of a thread of this process, or -1. Data plane too, for the
//   calling thread.
// * Instant: constructed when the calling thread has just woken from a wait.
// * ThreadProbe(id): observes a thread of this process from outside, without disturbing it.
//   Movable; used by one thread at a time.
//   Poll(): kRuns if the thread is on a CPU; kHasRun if it is not, but has run since the last poll;
//   kHasNotRun. Quick. seen_cpu_ns(): what the thread's CPU clock read then.
//   WasDisplaced(instant): after kHasRun, true if the thread was on the CPU that the calling thread
//   has taken when it woke.
//   WaitCount(): how often the thread has given up its CPU to wait; -1 if the system does not tell.
//   LastCpu(), of a platform that stays on CPUs: the CPU that the thread is or was on; -1 if the
//   system does not tell. YieldsAtOnce(): true if the thread gives its CPU to one that has woken in
//   time as soon as that wakes; not one with a real-time policy.
//   BlocksSignal(signal), optional: whether the thread blocks it, or waits for it. Quick: it comes
//   before each interruption.
//   Observe(), optional: a ThreadActivity, what the thread does now. On a platform that has it, a
//   thread whose CPU clock stands still executes nothing meanwhile.
// * ProcessCpuTimeNs(): the CPU time of all threads of this process, also of ended ones, by the
//   same clock; or -1.
// * ProgramThreads(): the threads of this process that live now, with their CPU clocks, but for
//   those of RunOnOwnThread; empty if the system does not tell. ThreadName(id): the name that the
//   system has of a thread; may be empty. OwnCpuTimeNs(): the CPU time of the threads of
//   RunOnOwnThread, also of ended ones. For Diagnose, and at the end of a period.
// * DefaultSignal(): a signal that the program does not use now.
// * InstallHandler(signal): installs the interruption handler, once for each signal. The handler is
//   never uninstalled, because a late signal would then meet its default action.
//   HandlerStateOf(signal): asks the system.
// * BlockedSignals(thread), optional: the signals that the thread blocks, signal n in bit n - 1; 0
//   if the system does not tell. Cheap for the calling thread. A platform that has it also has
//   SetSignalBlocked(signal, is_blocked), for the calling thread.
// * HoldSignalStack(), optional: gives the calling thread an alternate stack, on which handlers
//   run, unless it has one. True if it is ours: then ReleaseSignalStack() takes it away once all
//   that hold it have called that.
// * StartTimer(timer, thread, payload, first_ns, period_ns, signal), StopTimer(timer): a timer on
//   the thread's CPU clock. False if the system refuses. If the system sees expiries on a tick, the
//   first one comes on the last tick before `first_ns`, or on the thread's first one.
// * StartRandomTimer(timer, thread, provider, mean_ns, seed, signal), StopRandomTimer(timer),
//   optional: a RandomTimer on the thread's CPU clock, which lies in the thread's RegistrationLink.
//   False if the system refuses.
// * Interrupt(thread, payload, signal, was_running): interrupts a thread now, with that payload.
//   False if the thread has ended. `was_running` says that the thread was on a CPU just now: if it
//   has begun to wait since, the interruption should not end the wait. False also if nothing is
//   captured because the thread waits.
// * ModuleVersion(): changes whenever an image is loaded or unloaded. Modules(): what is loaded
//   now, the program first.
// * ReadMemory(address, bytes): a MemoryReader of this process's memory.
// * ReadStack(address, bytes): a SignalSafeMemoryReader of the calling thread's memory.
// * Files(): what a symbolizer asks of the system (symbolize/symbol_files.h). Lives for ever.
// * Directories(): what an exporter of files asks of the system (export/profile_directories.h).
//   Lives for ever.
// * RunOnOwnThread(name, body): starts a thread that blocks all signals; the caller joins it. The
//   result does not run if the system refused; error() is the errno that says why. The thread's
//   stack, priority and CPUs do not depend on those of the caller.
// * WithOwnFiles(body), optional: runs `body` on a thread whose files are not the program's, and
//   waits for it. The threads that body begins by RunOnOwnThread share these files. There, the
//   other functions of the platform still reach the program's where they need them. If the system
//   refuses, body has the program's files. It throws nothing.
// * WorkInBackground(), optional: lowers the calling thread's claim to the CPUs below the
//   program's. For threads of RunOnOwnThread.
// * WakeInTime(), optional: lets the calling thread wake from its waits with as little delay as the
//   system allows it. True if it gets its CPU at once when its wait ends, although another thread
//   runs there; hardly ever later. For threads of RunOnOwnThread.
// * StayOn(cpu), optional: from now on the calling thread runs on that CPU only; it does already
//   when this returns. False if the system refuses. StayOn(kAnyCpu) lets it go. CurrentCpu(): the
//   one that it runs on. Cpus(): those that the process may use; empty if the system does not tell.
//   IsSaturated(): whether more threads of the machine want a CPU now than it has, beside the
//   calling one. For threads of RunOnOwnThread.
// * SleepNs(time_ns), optional: waits more precisely than a condition variable.
// * ForkCount(): a number that is higher in a fork's child than in its parent. Cheap, because each
//   use of a Profiler calls it. Allocates only in a process's first call.
// * FollowForks(before, in_child), optional: from now on each fork calls before() on the forking
//   thread, in the parent, and in_child() on the child's thread. One fork at a time. before()
//   neither allocates nor waits for a thread that may. Nothing is called for a fork by a handler of
//   another fork, nor where the system does not tell of the fork.
// * AtExit(function): calls `function` when the program exits, on any thread, before objects that
//   were constructed earlier are destroyed, and while all threads still run. False if the system
//   cannot do that.
// * WriteLine(text): one line for people, to where MessageSink or MessageTarget says.
// * MapMemory(bytes): a Mapping of zeroed memory that is committed when touched, aligned to
//   kMappingAlignment. Its `bytes` are empty if the system refuses. A Mapping may be copied, and
//   has what a platform needs to share the memory with another process. UnmapMemory(mapping) frees
//   it.
// * PutIntoCores(memory), optional: core dumps have this part of a Mapping; they need not before.
// * DiscardMemory(memory, bytes): the content of this part is not needed any more. The platform may
//   free its pages until they are touched again; the part then holds anything.
template <class P>
concept Platform = TellsOfThreads<P> && std::default_initializable<typename P::Timer> &&
    std::default_initializable<typename P::Instant> &&
    std::constructible_from<typename P::ThreadProbe, std::uint64_t> &&
    std::movable<typename P::ThreadProbe> && std::default_initializable<typename P::OwnThread> &&
    std::movable<typename P::OwnThread> && std::default_initializable<typename P::Mapping> &&
    std::copyable<typename P::Mapping> &&
    requires(typename P::Timer& timer, typename P::OwnThread& own_thread, std::uint64_t number,
             typename P::Mapping mapping, std::int64_t time_ns, int signal, bool flag,
             const typename P::Instant& instant, typename P::ThreadProbe& probe,
             std::function<void()> body, const char* text, void* memory, void (*function)()) {
  { P::kCopiesStacks } -> std::convertible_to<bool>;
  { P::kHasFineCpuClocks } -> std::convertible_to<bool>;
  { P::Available() } -> std::same_as<absl::Status>;
  { P::ProcessId() } -> std::same_as<std::uint64_t>;
  { P::ProgramName() } -> std::same_as<std::string>;
  { P::EnvironmentVariable(text) } -> std::same_as<std::optional<std::string>>;
  { P::EnvironmentNames(text) } -> std::same_as<std::vector<std::string>>;
  { probe.Poll() } -> std::same_as<ThreadPoll>;
  { probe.WasDisplaced(instant) } -> std::same_as<bool>;
  { probe.seen_cpu_ns() } -> std::same_as<std::int64_t>;
  { probe.WaitCount() } -> std::same_as<std::int64_t>;
  { P::DefaultSignal() } -> std::same_as<int>;
  { P::InstallHandler(signal) } -> std::same_as<absl::Status>;
  { P::HandlerStateOf(signal) } -> std::same_as<HandlerState>;
  { P::StartTimer(timer, number, number, time_ns, time_ns, signal) } -> std::same_as<bool>;
  { P::StopTimer(timer) } -> std::same_as<void>;
  { P::Interrupt(number, number, signal, flag) } -> std::same_as<bool>;
  { P::ModuleVersion() } -> std::same_as<std::uint64_t>;
  { P::Modules() } -> std::same_as<std::vector<Module>>;
  { P::Files() } -> std::same_as<const SymbolFiles&>;
  { P::Directories() } -> std::same_as<const ProfileDirectories&>;
  requires MemoryReader<decltype(&P::ReadMemory)>;
  requires SignalSafeMemoryReader<decltype(&P::ReadStack)>;
  { P::RunOnOwnThread(text, body) } -> std::same_as<typename P::OwnThread>;
  { own_thread.IsRunning() } -> std::same_as<bool>;
  { own_thread.error() } -> std::same_as<int>;
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

// A platform with timers that expire at random.
template <class P>
concept HasRandomTimers = Platform<P> &&
    requires(internal::RandomTimer& timer, std::uint64_t number, std::int64_t time_ns, int signal) {
  {
    P::StartRandomTimer(timer, number, std::uint8_t{}, time_ns, number, signal)
    } -> std::same_as<bool>;
  { P::StopRandomTimer(timer) } -> std::same_as<void>;
};

// A platform on which a thread can take the CPU of the threads that it observes.
template <class P>
concept StaysOnCpus = Platform<P> && requires(typename P::ThreadProbe& probe, int cpu) {
  { P::WakeInTime() } -> std::same_as<bool>;
  { P::StayOn(cpu) } -> std::same_as<bool>;
  { P::CurrentCpu() } -> std::same_as<int>;
  { P::Cpus() } -> std::same_as<std::vector<int>>;
  { P::IsSaturated() } -> std::same_as<bool>;
  { probe.LastCpu() } -> std::same_as<int>;
  { probe.YieldsAtOnce() } -> std::same_as<bool>;
};

// A platform that tells where threads wait.
template <class P>
concept ObservesWaits = Platform<P> && requires(typename P::ThreadProbe& probe) {
  { probe.Observe() } -> std::same_as<ThreadActivity>;
};

// Gets a signal that comes to the process from outside. Control plane.
// * Open(signal): from now on the signal is this object's. FailedPrecondition if the signal has a
//   handler of the program, or belongs to another inbox of this process: then it stays as it is.
// * Wait(): waits for a signal since the last Wait, or since Open. Signals that came together count
//   as one. False after Close. One thread calls it.
// * Close(): ends the Wait that is under way, and all later ones. Does nothing before Open.
// The destructor, after the last Wait, gives the signal the action that it had before Open, unless
// the program has changed it since.
template <class I>
concept SignalInbox = std::default_initializable<I> && requires(I& inbox, int signal) {
  { inbox.Open(signal) } -> std::same_as<absl::Status>;
  { inbox.Wait() } -> std::same_as<bool>;
  { inbox.Close() } -> std::same_as<void>;
};

// A platform that has signals from outside.
template <class P>
concept ReceivesSignals = Platform<P> && SignalInbox<typename P::SignalInbox>;

// Delays the signals from outside that end the process. Control plane.
// * Take(patience_ns): from now on those of the signals are this object's whose action is the
//   default one. False if there are none, or if they belong to another object of this process. May
//   be called again. When a signal comes, the thread that gets it goes no further, Await returns,
//   and the process ends by the signal after that time at the latest. A second signal ends the
//   process at once.
// * Await(): true when a signal has come, false after Close. One thread calls it.
// * EndProcess(): after a true Await, ends the process by that signal.
// * Close(): ends the Await that is under way. Does nothing before Take.
// * GiveBack(): the signals have their default action again, unless the program has changed it
//   since. The destructor does so, too.
template <class S>
concept EndingSignals = std::default_initializable<S> &&
    requires(S& signals, std::int64_t patience_ns) {
  { signals.Take(patience_ns) } -> std::same_as<bool>;
  { signals.Await() } -> std::same_as<bool>;
  { signals.EndProcess() } -> std::same_as<void>;
  { signals.Close() } -> std::same_as<void>;
  { signals.GiveBack() } -> std::same_as<void>;
};

template <class P>
concept EndsBySignals = Platform<P> && EndingSignals<typename P::EndingSignals>;

}  // namespace strobe
