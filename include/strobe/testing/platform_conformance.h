// The contract of a Platform as tests. A port to another operating system:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MySystem, PlatformConformance, MyPlatform);
//
// Timers, delivered interruptions and forks need a whole session, and have tests of their own.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/core/module_map.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/platform.h"

namespace strobe::testing {

template <Platform P>
class PlatformConformance : public ::testing::Test {
 protected:
  // Returns what body() returns, on a new thread.
  template <class Body>
  static auto OnAnotherThread(Body&& body) {
    return std::async(std::launch::async, std::forward<Body>(body)).get();
  }

  // Computes until the calling thread's CPU clock has passed `before_ns`. The clock advances in
  // ticks, on Windows of 15.6 ms.
  static std::int64_t ComputeUntilAfter(std::int64_t before_ns) {
    std::int64_t now_ns = before_ns;
    while (now_ns <= before_ns && now_ns >= 0) now_ns = P::ThreadCpuTimeNs(P::CurrentThreadId());
    return now_ns;
  }
};
TYPED_TEST_SUITE_P(PlatformConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PlatformConformance);

TYPED_TEST_P(PlatformConformance, ThreadsThatLiveAtOnceHaveIdsOfTheirOwn) {
  constexpr std::size_t kThreads = 8;
  std::array<std::uint64_t, kThreads> ids{};
  std::atomic<std::size_t> arrived{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ids[i] = TypeParam::CurrentThread().id;
      EXPECT_EQ(TypeParam::CurrentThreadId(), ids[i]);
      ++arrived;
      while (arrived < kThreads) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::set<std::uint64_t> different(ids.begin(), ids.end());
  EXPECT_EQ(different.size(), kThreads);
  EXPECT_FALSE(different.contains(TypeParam::CurrentThreadId()));
}

// A platform need not know a stack's bounds. If it returns bounds, they must be right.
TYPED_TEST_P(PlatformConformance, AThreadsStackHoldsItsFrames) {
  const auto check = [] {
    const StackBounds stack = TypeParam::CurrentThread().stack;
    if (!stack.empty()) {
      // AddressSanitizer keeps locals elsewhere.
      EXPECT_TRUE(stack.Holds(reinterpret_cast<Address>(__builtin_frame_address(0))));
    }
    return stack.low;
  };
  const Address own = check();
  const Address other = this->OnAnotherThread(check);
  if (own != 0) {
    EXPECT_NE(own, other);
  }
}

TYPED_TEST_P(PlatformConformance, CpuClocksGoOnWhileAThreadComputes) {
  const std::int64_t process_before_ns = TypeParam::ProcessCpuTimeNs();
  const std::int64_t before_ns = TypeParam::ThreadCpuTimeNs(TypeParam::CurrentThreadId());
  ASSERT_GE(before_ns, 0);
  const std::int64_t after_ns = this->ComputeUntilAfter(before_ns);
  EXPECT_GT(after_ns, before_ns);
  // The process's clock includes every thread's time.
  EXPECT_GE(TypeParam::ProcessCpuTimeNs(), after_ns);
  EXPECT_GE(TypeParam::ProcessCpuTimeNs(), process_before_ns);
}

TYPED_TEST_P(PlatformConformance, OneThreadReadsTheCpuClockOfAnother) {
  const std::uint64_t id = TypeParam::CurrentThreadId();
  const std::int64_t before_ns = TypeParam::ThreadCpuTimeNs(id);
  const std::int64_t seen_ns =
      this->OnAnotherThread([&] { return TypeParam::ThreadCpuTimeNs(id); });
  EXPECT_GE(seen_ns, before_ns);
  EXPECT_GE(this->ComputeUntilAfter(seen_ns), seen_ns);
}

TYPED_TEST_P(PlatformConformance, AProbeOfAThreadThatWaitsSeesThatItDoesNotRun) {
  std::promise<std::uint64_t> id;
  std::promise<void> end;
  std::thread waiting([&] {
    id.set_value(TypeParam::CurrentThread().id);
    end.get_future().wait();
  });
  typename TypeParam::ThreadProbe probe(id.get_future().get());
  // It may still be on its way to its wait, and a platform may call a thread running for some time
  // after it has run. Then each look says that it does not run.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int looks_in_a_row = 0;
  while (looks_in_a_row < 100 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    const typename TypeParam::Instant instant;
    const bool waits = probe.Poll() == ThreadPoll::kHasNotRun && !probe.WasDisplaced(instant);
    looks_in_a_row = waits ? looks_in_a_row + 1 : 0;
  }
  EXPECT_EQ(looks_in_a_row, 100);
  EXPECT_GE(probe.WaitCount(), -1);
  end.set_value();
  waiting.join();
}

// A platform may list none, but no wrong ones.
TYPED_TEST_P(PlatformConformance, TheThreadsOfTheProgramAreListedWithoutTheProfilers) {
  std::promise<std::uint64_t> own_id;
  std::promise<void> end;
  auto own = TypeParam::RunOnOwnThread("own", [&] {
    own_id.set_value(TypeParam::CurrentThreadId());
    end.get_future().wait();
  });
  ASSERT_TRUE(own.IsRunning());
  const std::uint64_t own_thread = own_id.get_future().get();
  const std::vector<ProgramThread> threads = TypeParam::ProgramThreads();
  if (!threads.empty()) {
    const std::uint64_t id = TypeParam::CurrentThreadId();
    const auto this_thread = std::ranges::find(threads, id, &ProgramThread::id);
    ASSERT_NE(this_thread, threads.end());
    EXPECT_LE(this_thread->cpu_ns, TypeParam::ThreadCpuTimeNs(id));
    EXPECT_EQ(std::ranges::find(threads, own_thread, &ProgramThread::id), threads.end());
  }
  EXPECT_LE(TypeParam::ThreadName(own_thread).size(), std::size_t{1000});
  EXPECT_GE(TypeParam::OwnCpuTimeNs(), 0);
  end.set_value();
  own.Join();
}

TYPED_TEST_P(PlatformConformance, AThreadThatIsGoneIsNotInterrupted) {
  const std::uint64_t id = this->OnAnotherThread([] { return TypeParam::CurrentThreadId(); });
  // The system may report a thread's end a little after the join.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (TypeParam::ThreadCpuTimeNs(id) >= 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_FALSE(TypeParam::Interrupt(id, 0, 0, false));
}

TYPED_TEST_P(PlatformConformance, ATimerThatNeverStartedMayBeStopped) {
  typename TypeParam::Timer timer{};
  TypeParam::StopTimer(timer);
  TypeParam::StopTimer(timer);
}

TYPED_TEST_P(PlatformConformance, TheProgramHasANameAndTheProcessANumber) {
  EXPECT_FALSE(TypeParam::ProgramName().empty());
  EXPECT_NE(TypeParam::ProcessId(), 0u);
  EXPECT_EQ(TypeParam::EnvironmentVariable("STROBE_TEST_THAT_NOBODY_SETS"), std::nullopt);
  EXPECT_TRUE(TypeParam::EnvironmentNames("STROBE_TEST_THAT_NOBODY_SETS").empty());
}

TYPED_TEST_P(PlatformConformance, AnOwnThreadRunsItsBodyOnceAndIsJoined) {
  std::atomic<int> runs{0};
  std::atomic<std::uint64_t> id{0};
  typename TypeParam::OwnThread thread =
      TypeParam::RunOnOwnThread("strobe-a-name-that-is-too-long-for-any-system", [&] {
        id = TypeParam::CurrentThreadId();
        ++runs;
      });
  ASSERT_TRUE(thread.IsRunning());
  typename TypeParam::OwnThread moved = std::move(thread);
  moved.Join();
  EXPECT_EQ(runs, 1);
  EXPECT_NE(id, TypeParam::CurrentThreadId());
  moved.Join();  // has no thread now
  typename TypeParam::OwnThread none;
  EXPECT_FALSE(none.IsRunning());
  none.Join();
  none.Detach();
}

TYPED_TEST_P(PlatformConformance, ADetachedThreadRunsOn) {
  std::promise<void> detached;
  std::promise<void> ran;
  typename TypeParam::OwnThread thread = TypeParam::RunOnOwnThread("detached", [&] {
    detached.get_future().wait();
    ran.set_value();
  });
  ASSERT_TRUE(thread.IsRunning());
  thread.Detach();
  detached.set_value();
  ran.get_future().wait();
}

TYPED_TEST_P(PlatformConformance, MappedMemoryIsZeroedAndWritable) {
  constexpr std::uint64_t kBytes = std::uint64_t{8} << 20;
  const typename TypeParam::Mapping mapping = TypeParam::MapMemory(kBytes);
  const std::span<std::byte> bytes = mapping.bytes;
  ASSERT_GE(bytes.size(), kBytes);
  auto* const memory = reinterpret_cast<unsigned char*>(bytes.data());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % kMappingAlignment, 0u);
  for (std::uint64_t i = 0; i < kBytes; i += 4096) {
    ASSERT_EQ(memory[i], 0);
    memory[i] = 1;
  }
  TypeParam::DiscardMemory(memory, kBytes);
  memory[kBytes - 1] = 1;
  TypeParam::UnmapMemory(mapping);
}

TYPED_TEST_P(PlatformConformance, MemoryIsReadWhereThereIsSomeAndNeverFaults) {
  constexpr std::size_t kBytes = 100'000;
  std::vector<std::uint8_t> source(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) source[i] = static_cast<std::uint8_t>(i * 7);
  std::vector<std::uint8_t> copy(kBytes);
  EXPECT_EQ(TypeParam::ReadMemory(reinterpret_cast<std::uint64_t>(source.data()), copy), kBytes);
  EXPECT_EQ(copy, source);
  std::array<std::uint8_t, 64> stack_copy{};
  EXPECT_EQ(TypeParam::ReadStack(reinterpret_cast<std::uint64_t>(source.data()), stack_copy),
            stack_copy.size());
  EXPECT_EQ(stack_copy[9], source[9]);
  // No system maps the first page, nor the last.
  for (const std::uint64_t nothing : {std::uint64_t{8}, ~std::uint64_t{0} - 4095}) {
    EXPECT_EQ(TypeParam::ReadMemory(nothing, copy), 0u);
    EXPECT_EQ(TypeParam::ReadStack(nothing, stack_copy), 0u);
  }
}

// The program is the first module, and the code that runs here lies in exactly one module.
TYPED_TEST_P(PlatformConformance, ModulesHoldTheCodeThatRuns) {
  const std::uint64_t version = TypeParam::ModuleVersion();
  const std::vector<Module> modules = TypeParam::Modules();
  ASSERT_FALSE(modules.empty());
  EXPECT_EQ(modules.front().kind, ModuleKind::kProgram);
  for (const Module& module : modules) {
    EXPECT_LT(module.start, module.limit) << module.path;
    EXPECT_FALSE(module.path.empty());
    EXPECT_NE(module.kind, ModuleKind::kGeneratedCode) << module.path;
    EXPECT_EQ(module.format, modules.front().format) << module.path;
  }
  const ModuleMap map(modules);
  EXPECT_EQ(map.modules().size(), modules.size()) << "two of them overlap";
  EXPECT_TRUE(map.Find(reinterpret_cast<Address>(&TypeParam::ProcessId)));
  if (TypeParam::ModuleVersion() == version) {
    EXPECT_EQ(TypeParam::Modules(), modules);
  }
}

TYPED_TEST_P(PlatformConformance, ALineIsOneLine) {
  ::testing::internal::CaptureStderr();
  TypeParam::WriteLine("strobe: a line");
  TypeParam::WriteLine(std::string(2000, 'x'));
  std::string said = ::testing::internal::GetCapturedStderr();
  std::erase(said, '\r');
  EXPECT_EQ(said, "strobe: a line\n" + std::string(2000, 'x') + "\n");
}

REGISTER_TYPED_TEST_SUITE_P(
    PlatformConformance, ThreadsThatLiveAtOnceHaveIdsOfTheirOwn, AThreadsStackHoldsItsFrames,
    CpuClocksGoOnWhileAThreadComputes, OneThreadReadsTheCpuClockOfAnother,
    AProbeOfAThreadThatWaitsSeesThatItDoesNotRun,
    TheThreadsOfTheProgramAreListedWithoutTheProfilers, AThreadThatIsGoneIsNotInterrupted,
    ATimerThatNeverStartedMayBeStopped, TheProgramHasANameAndTheProcessANumber,
    AnOwnThreadRunsItsBodyOnceAndIsJoined, ADetachedThreadRunsOn, MappedMemoryIsZeroedAndWritable,
    MemoryIsReadWhereThereIsSomeAndNeverFaults, ModulesHoldTheCodeThatRuns, ALineIsOneLine);

}  // namespace strobe::testing
