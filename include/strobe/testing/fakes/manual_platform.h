// ManualPlatform: an operating system whose threads' clocks, timers and signals a test controls.
// With ManualPlatform and ManualClock, a test can run every part of a session, signal by signal, on
// one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "strobe/arch/registers.h"
#include "strobe/platform/capture_target.h"
#include "strobe/platform/platform.h"
#include "strobe/testing/fakes/archetypes.h"
#include "strobe/testing/fakes/fake_memory.h"
#include "strobe/testing/fakes/manual_directories.h"

namespace strobe::testing {

// All state belongs to the process; call Reset() between tests. Thread-safe.
struct ManualPlatform : ArchetypePlatform {
  struct Timer {
    bool is_started = false;
    std::uint64_t thread_id = 0;
    std::uint64_t payload = 0;
    std::int64_t first_ns = 0;
    std::int64_t period_ns = 0;
  };
  struct Instant {};
  class ThreadProbe {
   public:
    explicit ThreadProbe(std::uint64_t thread_id) : thread_id_(thread_id) {}
    ThreadPoll Poll();
    bool WasDisplaced(const Instant& instant);
    ThreadActivity Observe();
    [[nodiscard]] std::int64_t seen_cpu_ns() const { return seen_cpu_ns_; }
    std::int64_t WaitCount();
    [[nodiscard]] int LastCpu() const;
    [[nodiscard]] bool YieldsAtOnce() const;
    [[nodiscard]] bool BlocksSignal(int signal) const;

   private:
    std::uint64_t thread_id_;
    std::int64_t seen_cpu_ns_ = -1;
  };
  struct Interruption {
    std::uint64_t thread_id = 0;
    std::uint64_t payload = 0;
    int signal = 0;
    bool was_running = false;
  };

  // Set by a test.
  struct State {
    absl::Status available;
    bool refuses_timers = false;
    bool refuses_random_timers = true;
    int threads_left = 1000;  // how many threads RunOnOwnThread still starts
    HandlerState handler = HandlerState::kOurs;
    std::uint64_t module_version = 0;
    std::vector<Module> modules;
    int module_listings = 0;                       // calls of Modules
    std::map<std::uint64_t, std::int64_t> cpu_ns;  // by thread id
    std::int64_t own_cpu_ns = 0;                   // of the profiler's threads
    std::int64_t memory_bytes = -1;
    std::map<std::uint64_t, std::string> thread_names;  // by thread id
    std::set<std::uint64_t> ended;                      // ids of threads that live no more
    std::map<std::uint64_t, std::int64_t> wait_count;   // by thread id
    std::set<std::uint64_t> on_cpu;                     // ids of the threads that run
    std::set<std::uint64_t> blocking;  // ids of the threads that have begun to block all signals
    // What Cpus() says; without CPUs no thread wakes in time. StayOn keeps a thread on one of them,
    // or where another thread is (cpu_of, by id): own_cpu.
    std::vector<int> cpus;
    int own_cpu = kAnyCpu;
    bool is_saturated = false;
    std::map<std::uint64_t, int> cpu_of;
    std::set<std::uint64_t> keeps_cpu;  // ids of the threads that do not yield
    std::set<std::uint64_t> displaced;  // ids of the threads whose CPU the collector has taken
    // What threads do, by id, as far as the system tells. ReadMemory reads their stacks.
    std::map<std::uint64_t, ThreadActivity> activity;
    FakeMemory memory;
    // Called by Observe, while no other thread uses the state: what happens just afterwards.
    std::function<void(State&)> on_observe;

    // Read by a test.
    int clock_reads = 0;                      // of threads' CPU clocks
    std::vector<Interruption> interruptions;  // not yet delivered
    std::map<std::uint64_t, Timer> timers;    // by thread id
    // The mean times of random timers, by thread id.
    std::map<std::uint64_t, std::int64_t> random_timers;
    std::vector<std::string> lines;
    std::vector<void*> discarded;  // what DiscardMemory was called with
  };
  // Calls body(state) while no other thread uses it.
  template <class Body>
  static auto With(Body&& body) {
    const std::lock_guard lock(Globals().mutex);
    return body(Globals().state);
  }
  static void Reset() {
    With([](State& state) { state = State(); });
    TheDirectories().Reset();
  }
  // What Directories() gives the profiler.
  static ManualDirectories& TheDirectories() {
    static auto* const directories = new ManualDirectories;
    return *directories;
  }
  static void RunFor(std::uint64_t thread_id, std::int64_t cpu_ns) {
    With([&](State& state) { state.cpu_ns[thread_id] += cpu_ns; });
  }

  // Behaves as in a fork's child from now on. Reset() does not undo this.
  static void Fork() { fork_count_.fetch_add(1); }

  // Makes the calling thread act as thread `id`, for tests that play several threads on one.
  static void ActAs(std::uint64_t id) { acting_as_ = id; }

  // Delivers a signal with `payload` to the calling thread while it executes at `pc`. False if no
  // capture took it.
  static bool Deliver(std::uint64_t payload, std::int64_t timer_expiries, Address pc) {
    NativeRegisters registers;
    registers.pc = pc;
    return DeliverWith(payload, timer_expiries, &registers);
  }
  static bool DeliverWith(std::uint64_t payload, std::int64_t timer_expiries,
                          const NativeRegisters* registers) {
    internal::ChannelToken token;
    if (!internal::ChannelToken::Unpack(payload, token)) return false;
    const internal::CaptureEntry& entry = internal::CaptureEntryOf(token.arena);
    const internal::CaptureEntry::Function function = entry.function.load();
    return function != nullptr &&
           function(entry.context,
                    {.token = token, .timer_expiries = timer_expiries, .registers = registers});
  }
  // Delivers all interruptions requested so far. Returns how many were taken.
  static int DeliverAll(Address pc) {
    const auto interruptions =
        With([](State& state) { return std::exchange(state.interruptions, {}); });
    int taken = 0;
    for (const Interruption& interruption : interruptions)
      taken += Deliver(interruption.payload, 0, pc) ? 1 : 0;
    return taken;
  }

  // The functions of Platform.
  static absl::Status Available() {
    return With([](State& state) { return state.available; });
  }
  static ThreadInfo CurrentThread() { return {.id = CurrentThreadId(), .stack = {}}; }
  static std::uint64_t CurrentThreadId() {
    return acting_as_ != 0 ? acting_as_ : ArchetypePlatform::CurrentThreadId();
  }
  static std::int64_t ThreadCpuTimeNs(std::uint64_t thread_id) {
    return With([&](State& state) {
      ++state.clock_reads;
      return state.cpu_ns[thread_id];
    });
  }
  static std::int64_t ProcessMemoryBytes() {
    return With([](State& state) { return state.memory_bytes; });
  }
  static std::int64_t ProcessCpuTimeNs() {
    return With([](State& state) {
      std::int64_t sum_ns = state.own_cpu_ns;
      for (const auto& [id, cpu_ns] : state.cpu_ns) sum_ns += cpu_ns;
      return sum_ns;
    });
  }
  static std::vector<ProgramThread> ProgramThreads() {
    return With([](State& state) {
      std::vector<ProgramThread> threads;
      for (const auto& [id, cpu_ns] : state.cpu_ns) {
        if (!state.ended.contains(id)) threads.push_back({.id = id, .cpu_ns = cpu_ns});
      }
      return threads;
    });
  }
  static std::string ThreadName(std::uint64_t thread_id) {
    return With([&](State& state) { return state.thread_names[thread_id]; });
  }
  static std::int64_t OwnCpuTimeNs() {
    return With([](State& state) { return state.own_cpu_ns; });
  }
  static HandlerState HandlerStateOf(int /*signal*/) {
    return With([](State& state) { return state.handler; });
  }
  static bool StartTimer(Timer& timer, std::uint64_t thread_id, std::uint64_t payload,
                         std::int64_t first_ns, std::int64_t period_ns, int /*signal*/) {
    return With([&](State& state) {
      if (state.refuses_timers) return false;
      timer = {.is_started = true,
               .thread_id = thread_id,
               .payload = payload,
               .first_ns = first_ns,
               .period_ns = period_ns};
      state.timers[thread_id] = timer;
      return true;
    });
  }
  static void StopTimer(Timer& timer) {
    if (!std::exchange(timer.is_started, false)) return;
    With([&](State& state) { state.timers.erase(timer.thread_id); });
  }
  static bool StartRandomTimer(internal::RandomTimer& timer, std::uint64_t thread_id,
                               std::uint8_t provider, std::int64_t mean_ns, std::uint64_t /*seed*/,
                               int /*signal*/) {
    const bool is_started = With([&thread_id, &mean_ns](State& state) {
      if (!state.refuses_random_timers) state.random_timers[thread_id] = mean_ns;
      return !state.refuses_random_timers;
    });
    if (!is_started) return false;
    timer.provider = provider;
    timer.event = static_cast<int>(thread_id);
    return true;
  }
  static void StopRandomTimer(internal::RandomTimer& timer) {
    const int thread_id = timer.event.exchange(-1);
    if (thread_id < 0) return;
    With([&](State& state) { state.random_timers.erase(static_cast<std::uint64_t>(thread_id)); });
  }
  static bool Interrupt(std::uint64_t thread_id, std::uint64_t payload, int signal,
                        bool was_running) {
    With([&](State& state) {
      state.interruptions.push_back({.thread_id = thread_id,
                                     .payload = payload,
                                     .signal = signal,
                                     .was_running = was_running});
    });
    return true;
  }
  static std::uint64_t ModuleVersion() {
    return With([](State& state) { return state.module_version; });
  }
  static std::vector<Module> Modules() {
    return With([](State& state) {
      ++state.module_listings;
      return state.modules;
    });
  }
  static const ProfileDirectories& Directories() { return TheDirectories(); }
  static std::size_t ReadMemory(std::uint64_t address, std::span<std::uint8_t> bytes) {
    return With([&](State& state) { return state.memory(address, bytes); });
  }
  static OwnThread RunOnOwnThread(const char* /*name*/, std::function<void()> body) {
    if (With([](State& state) { return state.threads_left-- <= 0; })) return OwnThread(EAGAIN);
    return OwnThread(std::move(body));
  }
  static bool WakeInTime() {
    return With([](State& state) { return !state.cpus.empty(); });
  }
  static std::vector<int> Cpus() {
    return With([](State& state) { return state.cpus; });
  }
  static bool StayOn(int cpu) {
    return With([&](State& state) {
      const bool is_there =
          std::find(state.cpus.begin(), state.cpus.end(), cpu) != state.cpus.end() ||
          std::any_of(state.cpu_of.begin(), state.cpu_of.end(),
                      [cpu](const auto& thread) { return thread.second == cpu; });
      if (is_there || cpu == kAnyCpu) state.own_cpu = cpu;
      return is_there || cpu == kAnyCpu;
    });
  }
  static bool IsSaturated() {
    return With([](State& state) { return state.is_saturated; });
  }
  static int CurrentCpu() {
    return With([](State& state) { return state.own_cpu; });
  }
  static std::uint64_t ForkCount() { return fork_count_.load(); }
  static void WriteLine(const std::string& text) {
    With([&](State& state) { state.lines.push_back(text); });
  }
  static void DiscardMemory(void* memory, std::uint64_t bytes) {
    ArchetypePlatform::DiscardMemory(memory, bytes);
    With([&](State& state) { state.discarded.push_back(memory); });
  }

 private:
  struct Global {
    std::mutex mutex;
    State state;
  };
  static Global& Globals() {
    static auto* const globals = new Global;
    return *globals;
  }
  static inline thread_local std::uint64_t acting_as_ = 0;
  static inline constinit std::atomic<std::uint64_t> fork_count_{0};
};
static_assert(ObservesWaits<ManualPlatform> && StaysOnCpus<ManualPlatform>);

inline ThreadPoll ManualPlatform::ThreadProbe::Poll() {
  const std::int64_t cpu_ns = ThreadCpuTimeNs(thread_id_);
  const bool has_run = std::exchange(seen_cpu_ns_, cpu_ns) != cpu_ns;
  if (With([&](State& state) { return state.on_cpu.contains(thread_id_); }))
    return ThreadPoll::kRuns;
  return has_run ? ThreadPoll::kHasRun : ThreadPoll::kHasNotRun;
}
inline bool ManualPlatform::ThreadProbe::WasDisplaced(const Instant& /*instant*/) {
  return With([&](State& state) { return state.displaced.contains(thread_id_); });
}
inline int ManualPlatform::ThreadProbe::LastCpu() const {
  return With([&](State& state) {
    const auto cpu = state.cpu_of.find(thread_id_);
    return cpu == state.cpu_of.end() ? kAnyCpu : cpu->second;
  });
}
inline bool ManualPlatform::ThreadProbe::YieldsAtOnce() const {
  return With([&](State& state) { return !state.keeps_cpu.contains(thread_id_); });
}
inline ThreadActivity ManualPlatform::ThreadProbe::Observe() {
  return With([&](State& state) {
    const ThreadActivity activity = state.activity[thread_id_];
    if (state.on_observe) state.on_observe(state);
    return activity;
  });
}
inline std::int64_t ManualPlatform::ThreadProbe::WaitCount() {
  return With([&](State& state) { return state.wait_count[thread_id_]; });
}
inline bool ManualPlatform::ThreadProbe::BlocksSignal(int /*signal*/) const {
  return With([&](State& state) { return state.blocking.contains(thread_id_); });
}

}  // namespace strobe::testing
