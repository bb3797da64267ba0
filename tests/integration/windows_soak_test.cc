// For STROBE_TEST_SECONDS, makes a thousand attempts a second to stop threads that hold the heap's
// lock or the loader's. Meanwhile other threads load and unload libraries, begin and end. A wait
// for a lock that a stopped thread holds would hang.
#include <gtest/gtest.h>
#include <windows.h>
// After it.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "../../src/platform/windows/stopped_thread.h"
#include "kept_profiles.h"
#include "strobe/own_parts.h"
#include "strobe/platform/capture_target.h"
#include "support/until_seen.h"

namespace strobe::testing {
namespace {

using std::chrono::steady_clock;

struct SoakTraits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, NullExporter>>;
};

class WindowsSoak : public ::testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kStopPeriod{1};
  static constexpr std::chrono::milliseconds kMaxDelay{100};
  // Of an arena that no profiler has.
  static constexpr std::uint8_t kArena = internal::kMaxArenas - 1;

  void SetUp() override {
    internal::CaptureEntryOf(kArena).function = [](void*, const internal::CaptureTarget&) {
      return true;
    };
    ASSERT_TRUE(profiler_.Start().ok());
  }
  void TearDown() override { internal::CaptureEntryOf(kArena).function = nullptr; }

  // Starts a thread that does body() again and again.
  template <class Body>
  void Run(std::size_t number, Body body) {
    threads_.emplace_back([this, number, body]() mutable {
      const Registration registration = profiler_.RegisterThread("soak");
      ids_[number] = NativePlatform::CurrentThreadId();
      while (!is_ending_) {
        body();
        turns_[number].fetch_add(1, std::memory_order_relaxed);
      }
      ids_[number] = 0;
    });
  }

  // On a machine that is busy with other things it may take longer than the test's shortest form.
  bool HaveAllRun() {
    return stops_ > 0 && profiler_.stats().samples > 0 &&
           std::all_of(turns_.begin(), turns_.end(), [](const auto& turns) { return turns > 0; });
  }

  // Stops the threads in turn until the end, and until all have run, beside the profiler. It makes
  // up for what it could not do in time, but not for long. If all have not run in the end, the test
  // fails.
  void StopThreads(steady_clock::time_point end) {
    const std::uint64_t payload = internal::ChannelToken{.arena = kArena}.Pack();
    std::size_t next = 0;
    int looks = 0;
    for (auto due = steady_clock::now(); due < end || (!HaveAllRun() && looks++ < kPatienceLooks);
         due = std::max(due + kStopPeriod, steady_clock::now() - kMaxDelay)) {
      std::this_thread::sleep_until(due);
      // The next thread that is there: often one has just ended.
      for (std::size_t i = 0; i < ids_.size(); ++i) {
        if (!NativePlatform::Interrupt(ids_[next++ % ids_.size()], payload, 0, false)) continue;
        ++stops_;
        break;
      }
    }
  }

  BasicProfiler<SoakTraits> profiler_{
      ProfilerOptions{.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 1000}}};
  std::array<std::atomic<std::uint64_t>, 4> ids_{};
  std::array<std::atomic<std::uint64_t>, 4> turns_{};
  std::atomic<bool> is_ending_{false};
  std::uint64_t stops_ = 0;
  std::vector<std::thread> threads_;
};

TEST_F(WindowsSoak, NobodyWaitsForWhatAStoppedThreadHolds) {
  const char* const asked = std::getenv("STROBE_TEST_SECONDS");
  const std::chrono::seconds duration(asked == nullptr ? 3 : std::atoi(asked));
  Run(0, [] {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < 200; ++i) texts.emplace_back(i * 7, 'x');
  });
  Run(1, [turn = std::size_t{0}]() mutable {
    constexpr std::array<const wchar_t*, 2> kNames{L"winmm.dll", L"version.dll"};
    const HMODULE library = LoadLibraryW(kNames[turn++ % kNames.size()]);
    if (library != nullptr) FreeLibrary(library);
    std::this_thread::sleep_for(kStopPeriod);
  });
  Run(2, [this] {
    std::thread([this] {
      const Registration registration = profiler_.RegisterThread("short");
      ids_[3] = NativePlatform::CurrentThreadId();
      turns_[3].fetch_add(1, std::memory_order_relaxed);
    }).join();
    std::this_thread::sleep_for(kStopPeriod);
  });
  StopThreads(steady_clock::now() + duration);
  is_ending_ = true;
  for (std::thread& thread : threads_) thread.join();
  EXPECT_TRUE(profiler_.Stop().ok());
  const Stats stats = profiler_.stats();
  std::printf(
      "%lld s: %llu stops, %llu of them by hand, %llu samples, %llu stops that the watchdog ended; "
      "turns: %llu of the heap, %llu of the "
      "loader, %llu threads\n",
      static_cast<long long>(duration.count()),
      static_cast<unsigned long long>(internal::GlobalStopCounters().stopped.load()),
      static_cast<unsigned long long>(stops_), static_cast<unsigned long long>(stats.samples),
      static_cast<unsigned long long>(internal::GlobalStopCounters().resumed.load()),
      static_cast<unsigned long long>(turns_[0].load()),
      static_cast<unsigned long long>(turns_[1].load()),
      static_cast<unsigned long long>(turns_[2].load()));
  EXPECT_GT(stops_, 0u);
  EXPECT_GT(stats.samples, 0u);
  for (const auto& turns : turns_) EXPECT_GT(turns, 0u);
}

}  // namespace
}  // namespace strobe::testing
