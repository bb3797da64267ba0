// storm [--samples N] [--seconds S]: profiles a program that does everything at once, at the
// highest rate, and checks that it neither crashes nor hangs nor loses weight. Ends after N samples
// or S seconds, whichever comes first, and when it has seen what it checks; 0 is no limit.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "storm_parts.h"
#include "storm_weather.h"

namespace strobe::testing {
namespace {

// A storm that brings no sample for that long hangs: the alarm ends it.
constexpr unsigned kHangSeconds = 120;

struct Limits {
  std::uint64_t samples = 200'000;
  double seconds = 0;
};

// What the clocks said of the threads of one name.
struct Expected {
  CpuBounds cpu;
  std::int64_t wall_low_ns = 0;
  std::int64_t wall_high_ns = 0;
  std::uint64_t registrations = 0;
  std::uint64_t rounds = 0;
};

class Storm {
 public:
  Storm(const char* plugin, const char* second_copy) : plugin_(plugin), second_copy_(second_copy) {}

  // False, with the reason on stderr, where anything is wrong.
  bool Run(const Limits& limits) {
    Totals::HoldOverForks();
    const absl::Status status = profiler_.Start();
    if (!status.ok()) return Fail("it does not start: " + std::string(status.message()));
    std::vector<std::thread> threads = Begin();
    Wait(limits);
    is_over_ = true;
    for (std::thread& thread : threads) thread.join();
    const absl::Status stopped = profiler_.Stop();
    if (!stopped.ok()) return Fail("it does not stop: " + std::string(stopped.message()));
    Check();
    PrintStats();
    return is_good_;
  }

 private:
  bool Fail(const std::string& what) {
    std::fprintf(stderr, "storm: %s\n", what.c_str());
    is_good_ = false;
    return false;
  }

  // Runs round(i) for i = 0, 1, ... on the calling thread, registered as `name`: at least once, and
  // until the storm is over. A thread that mostly waits is left to wait.
  void RunRole(const std::string& name, const std::function<void(unsigned)>& round,
               unsigned max_rounds = ~0U, bool waits = false) {
    unsigned rounds = 0;
    const std::int64_t outer_ns = ReadMonotonicNs();
    std::int64_t wall_low_ns = 0;
    const CpuBounds bounds = RunRegistered(profiler_, name, [&] {
      const std::int64_t inner_ns = ReadMonotonicNs();
      {
        std::optional<Pesterer> pesterer;
        if (!waits) pesterer.emplace();
        do round(rounds);
        while (++rounds < max_rounds && !is_over_.load());
      }
      wall_low_ns = ReadMonotonicNs() - inner_ns;
    });
    const std::int64_t wall_high_ns = ReadMonotonicNs() - outer_ns;
    const std::lock_guard lock(mutex_);
    if (bounds.low_ns < 0) Fail("a thread is refused");
    Expected& expected = expected_[name];
    expected.cpu += bounds;
    expected.wall_low_ns += wall_low_ns;
    expected.wall_high_ns += wall_high_ns;
    ++expected.registrations;
    expected.rounds += rounds;
  }

  static std::int64_t ReadMonotonicNs() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  std::vector<std::thread> Begin() {
    std::vector<std::thread> threads;
    const auto role = [&](const char* name, std::function<void(unsigned)> round,
                          bool waits = false) {
      threads.emplace_back(
          [this, name, round = std::move(round), waits] { RunRole(name, round, ~0U, waits); });
    };
    role("throws", [](unsigned i) { ThrowAndCatch(static_cast<int>(i % 30)); });
    role("allocates", [](unsigned i) { Allocate(i); });
    role("loads", [this](unsigned) {
      if (!LoadCallUnload(plugin_)) Fail("the library cannot be loaded");
    });
    // A session's end joins threads. ThreadSanitizer may stop for ever where a signal meets a join:
    // its handler waits for what the interrupted thread holds.
    if (!kIsThreadSanitizer) {
      role("has two", [this](unsigned) {
        const char* const wrong = ProfileBySecondCopy(second_copy_);
        if (wrong != nullptr) Fail(wrong);
      });
    }
    role("takes signals", [](unsigned) { TakeSignals(); });
    // The sanitizers know nothing of stacks that change hands. In the child of a process with
    // threads, ThreadSanitizer gives up, and AddressSanitizer's allocator may be locked for ever.
    if (!kIsSanitized) {
      role("switches", [](unsigned) { SwitchCoroutines(); });
      role(
          "forks",
          [this](unsigned i) {
            if (!ForkAndWait(profiler_, i % 16 == 0)) Fail("a child failed");
          },
          /*waits=*/true);
    }
    threads.emplace_back([this] {
      do {
        std::thread([this] {
          RunRole(
              "comes and goes", [](unsigned i) { ThrowAndCatch(static_cast<int>(i)); }, 20);
        }).join();
      } while (!is_over_.load());
    });
    return threads;
  }

  // Whether each thread that changes stacks has been seen on another one. Periods end by
  // themselves.
  static bool HaveSpun() {
    return kIsSanitized || (Totals::HasSpun("switches") && Totals::HasSpun("takes signals"));
  }

  void Wait(const Limits& limits) {
    const auto begin = std::chrono::steady_clock::now();
    std::uint64_t before = ~std::uint64_t{0};
    while (true) {
      const std::uint64_t samples = profiler_.stats().samples;
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
      const bool is_enough = (limits.samples != 0 && samples >= limits.samples) ||
                             (limits.seconds != 0 && elapsed.count() >= limits.seconds);
      if (is_enough && HaveSpun()) break;
      if (samples != before) alarm(kHangSeconds);
      before = samples;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    alarm(kHangSeconds);
    elapsed_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  void Check() {
    const auto totals = Totals::Take();
    std::int64_t requests = 0;
    std::int64_t expiries = 0;
    std::printf("%-15s %9s %9s %10s %10s %10s %10s %11s %11s\n", "threads", "number", "rounds",
                "requests", "expiries", "in Spin", "stacks cut", "cpu ms", "wall ms");
    for (const auto& [name, sums] : totals) {
      requests += sums.requests;
      expiries += sums.expiries;
      const Expected& expected = expected_[name];
      std::printf("%-15s %9" PRIu64 " %9" PRIu64 " %10" PRId64 " %10" PRId64 " %10" PRId64
                  " %10" PRId64 " %11.1f %11.1f\n",
                  name.c_str(), expected.registrations, expected.rounds, sums.requests,
                  sums.expiries, sums.in_spin, sums.cut, static_cast<double>(sums.cpu_ns) / 1e6,
                  static_cast<double>(sums.wall_ns) / 1e6);
    }
    for (const auto& [name, expected] : expected_) {
      const auto found = totals.find(name);
      const Totals::Sums sums = found == totals.end() ? Totals::Sums() : found->second;
      Bracket(name + ": cpu", sums.cpu_ns, expected.cpu.low_ns, expected.cpu.high_ns);
      Bracket(name + ": wall", sums.wall_ns, expected.wall_low_ns, expected.wall_high_ns);
      CheckCut(name, sums);
    }
    Bracket("requests", requests, RequestProvider::total_asked.load(),
            RequestProvider::total_asked.load());
    Bracket("expiries", expiries, ExpiryProvider::total_credited.load(),
            ExpiryProvider::total_credited.load());
    const std::string wrong = Totals::WhatIsWrong();
    if (!wrong.empty()) Fail("a profile is not well-formed: " + wrong);
  }

  // Whatever stack a thread is on, what is seen of it in Spin is whole, unless the sample came
  // before a table: its copy holds a part of one stack. Elsewhere it need not be:
  // glibc's swapcontext and libgcc's landing of an exception change stacks while their frame
  // information still describes the one before, and a library is known from the first drain after
  // its loading on.
  void CheckCut(const std::string& name, const Totals::Sums& sums) {
    const auto most = static_cast<std::int64_t>(profiler_.stats().stacks_deferred);
    if (!kIsSanitized) Bracket(name + ": stacks cut", sums.cut, 0, most);
  }

  void Bracket(const std::string& what, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value >= low && value <= high) return;
    Fail(what + ": " + std::to_string(value) + " is not from " + std::to_string(low) + " to " +
         std::to_string(high));
  }

  void PrintStats() {
    const Stats stats = profiler_.stats();
    std::printf("%" PRIu64 " samples in %.1f s (%.0f a second), %" PRIu64 " exports, %" PRIu64
                " module lists, %" PRIu64 " drains\n",
                stats.samples, elapsed_s_, static_cast<double>(stats.samples) / elapsed_s_,
                stats.exports, stats.module_refreshes, stats.drains);
    std::printf("stacks: %" PRIu64 " complete, %" PRIu64 " of coroutines, %" PRIu64
                " truncated, %" PRIu64 " broken, %" PRIu64 " without unwind info\n",
                stats.stack_ends[0], stats.stack_ends[4], stats.stack_ends[1], stats.stack_ends[2],
                stats.stack_ends[3]);
    std::printf("without a record: %" PRIu64 " for a full ring, %" PRIu64
                " without registers; overflowed %" PRIu64 "; stale signals %" PRIu64
                "; waits abandoned %" PRIu64 "; memory %.1f MiB\n",
                stats.drops[0], stats.drops[1], stats.stacks_overflowed, stats.signals_stale,
                stats.waits_abandoned, static_cast<double>(stats.memory_bytes) / 1048576);
    std::printf("%s\n", is_good_ ? "no weight was lost" : "FAILED");
  }

  const char* const plugin_;
  const char* const second_copy_;
  StormProfiler profiler_{ProfilerOptions{.sampling = {.cpu_frequency_hz = 10000,
                                                       .wall_frequency_hz = 1000,
                                                       .trigger = SampleTrigger::kTimers},
                                          .threads = {.ring_bytes = 256 * 1024},
                                          .collector = {.drain_period_ms = 5},
                                          .exporter = {.period_s = 2, .stop_timeout_s = 60}}};
  std::atomic<bool> is_over_{false};
  std::atomic<bool> is_good_{true};
  double elapsed_s_ = 0;
  std::mutex mutex_;
  std::map<std::string, Expected> expected_;
};

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  strobe::testing::Limits limits;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    char* end = nullptr;
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--samples") {
      limits.samples = std::strtoull(value, &end, 10);
    } else if (name == "--seconds") {
      limits.seconds = std::strtod(value, &end);
    }
    if (end == nullptr || end == value || *end != 0 || limits.seconds < 0) {
      std::fprintf(stderr, "usage: storm [--samples N] [--seconds S]\n");
      return 2;
    }
  }
  strobe::testing::Storm storm(STROBE_STORM_PLUGIN, STROBE_STORM_SECOND_COPY);
  return storm.Run(limits) ? 0 : 1;
}
