// What a Platform's ThreadProbe::Observe promises, as tests: another thread can walk the stack of a
// thread that waits. A port to another operating system:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MySystem, ThreadActivityConformance, MyPlatform);
//
// A platform need not tell, and a system may refuse.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <thread>

#include "gtest/gtest.h"
#include "strobe/core/module_map.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/platform.h"

namespace strobe::testing {

template <Platform P>
class ThreadActivityConformance : public ::testing::Test {
 protected:
  using Kind = ThreadActivity::Kind;

  static ThreadActivity Observe(typename P::ThreadProbe& probe) {
    if constexpr (ObservesWaits<P>) {
      return probe.Observe();
    } else {
      return {};
    }
  }

  // Two observations of a thread whose CPU clock stands still from before the first until after the
  // second. The thread must be about to wait.
  struct Observations {
    ThreadActivity first;
    ThreadActivity second;
  };
  static Observations ObserveWait(std::uint64_t id, typename P::ThreadProbe& probe) {
    while (true) {
      const std::int64_t cpu_ns = P::ThreadCpuTimeNs(id);
      const Observations result{.first = Observe(probe), .second = Observe(probe)};
      if (result.second.kind != Kind::kReady && P::ThreadCpuTimeNs(id) == cpu_ns) return result;
      std::this_thread::yield();
    }
  }

  // The code and the stack of a wait can be read, and the code is a module's.
  static void ExpectPlace(const ThreadActivity& wait, const StackBounds& stack) {
    EXPECT_TRUE(ModuleMap(P::Modules()).Find(wait.pc));
    if (!stack.empty()) {
      EXPECT_TRUE(stack.Holds(wait.sp));
    }
    std::array<std::uint8_t, 8> word{};
    EXPECT_EQ(P::ReadMemory(wait.pc, word), word.size());
    EXPECT_EQ(P::ReadMemory(wait.sp, word), word.size());
  }
};
TYPED_TEST_SUITE_P(ThreadActivityConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ThreadActivityConformance);

TYPED_TEST_P(ThreadActivityConformance, AThreadWaitsInCodeAndOnItsStackUntilItRuns) {
  using Kind = ThreadActivity::Kind;
  std::promise<ThreadInfo> info;
  std::promise<void> end;
  std::thread waiting([&] {
    info.set_value(TypeParam::CurrentThread());
    end.get_future().wait();
  });
  const ThreadInfo thread = info.get_future().get();
  typename TypeParam::ThreadProbe probe(thread.id);
  const auto [first, second] = this->ObserveWait(thread.id, probe);
  EXPECT_EQ(second.kind, first.kind);
  EXPECT_EQ(second.pc, first.pc);
  EXPECT_EQ(second.sp, first.sp);
  if (first.kind != Kind::kUnknown) this->ExpectPlace(first, thread.stack);
  end.set_value();
  waiting.join();
  // The system may report a thread's end a little after the join.
  while (TypeParam::ThreadCpuTimeNs(thread.id) >= 0) std::this_thread::yield();
  EXPECT_EQ(this->Observe(probe).kind, Kind::kUnknown);
}

TYPED_TEST_P(ThreadActivityConformance, AThreadThatComputesDoesNotWait) {
  std::promise<std::uint64_t> id;
  std::atomic<bool> is_ending{false};
  std::thread busy([&] {
    id.set_value(TypeParam::CurrentThread().id);
    while (!is_ending.load(std::memory_order_relaxed)) {
    }
  });
  const std::uint64_t busy_id = id.get_future().get();
  typename TypeParam::ThreadProbe probe(busy_id);
  // So that the thread has left the promise.
  constexpr std::int64_t kEnoughNs = 5'000'000;
  while (TypeParam::ThreadCpuTimeNs(busy_id) < kEnoughNs) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) EXPECT_NE(this->Observe(probe).kind, ThreadActivity::Kind::kWaits);
  is_ending = true;
  busy.join();
}

REGISTER_TYPED_TEST_SUITE_P(ThreadActivityConformance, AThreadWaitsInCodeAndOnItsStackUntilItRuns,
                            AThreadThatComputesDoesNotWait);

}  // namespace strobe::testing
