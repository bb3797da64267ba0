// Stacks of unusual size and place: the smallest there may be, alternate signal stacks, coroutines.
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "support/until_seen.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CpuBounds;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::WaitUntil;
using testing::WorkUntil;
using NamedProfiler = BasicProfiler<testing::NamedKeepingTraits>;

ProfilerOptions AtMostRate() { return {.sampling = {.cpu_frequency_hz = 1000, .max_overhead = 1}}; }

void ExpectAccounted(const std::vector<KeptProfile>& kept, const std::string& name,
                     const CpuBounds& bounds) {
  const auto cpu_ns = SumByName(kept, "cpu");
  ASSERT_TRUE(cpu_ns.contains(name)) << name;
  EXPECT_GE(cpu_ns.at(name), bounds.low_ns);
  EXPECT_LE(cpu_ns.at(name), bounds.high_ns);
}

// Whether a sample of that profile has a function whose name contains `function` anywhere on its
// stack.
bool HasSampleThrough(const KeptProfile& kept, const std::string& function) {
  for (const ProfileSample& sample : kept.profile.samples) {
    for (std::uint32_t node = sample.stack; node != 0; node = kept.profile.stacks[node].parent) {
      const std::uint32_t frame = kept.profile.stacks[node].frame;
      if (frame >= kept.symbols.frames.size() ||
          kept.symbols.frames[frame].function == FrameSymbols::kNone)
        continue;
      const std::string& name = kept.symbols.functions[kept.symbols.frames[frame].function].name;
      if (name.find(function) != std::string::npos) return true;
    }
  }
  return false;
}

// Calls work() and ends a period, until a sample through that function has been kept.
// ThreadSanitizer delivers signals late: perhaps when the work is over.
void WorkUntilSampledIn(NamedProfiler& profiler, const std::string& function, void (*work)()) {
  testing::WorkUntilKept(
      profiler,
      [&](const KeptProfile& kept) {
        return testing::kIsThreadSanitizer || HasSampleThrough(kept, function);
      },
      work);
}

[[gnu::noinline]] void WorkOnSmallStack() {
  BurnCpu(20'000'000);
  asm volatile("");
}

TEST(SmallStacks, SixteenKibibytes) {
  if (testing::kIsSanitized) GTEST_SKIP() << "the sanitizers' own frames need more";
  NamedProfiler profiler(AtMostRate());
  ASSERT_TRUE(profiler.Start().ok());
  struct Work {
    NamedProfiler& profiler;
    CpuBounds bounds;
  };
  std::vector<Work> work(8, Work{profiler, {}});
  static std::atomic<bool> is_sampled;
  is_sampled = false;
  std::vector<pthread_t> threads(work.size());
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  const long least = sysconf(_SC_THREAD_STACK_MIN);
  ASSERT_EQ(pthread_attr_setstacksize(
                &attributes,
                std::max<std::size_t>(16 * 1024, least > 0 ? static_cast<std::size_t>(least) : 0)),
            0);
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto run = [](void* argument) -> void* {
      Work& own = *static_cast<Work*>(argument);
      own.bounds = RunRegistered(own.profiler, "small", [] {
        do BurnCpu(20'000'000);
        while (!is_sampled.load());
      });
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&threads[i], &attributes, run, &work[i]), 0);
  }
  WaitUntil([&] { return profiler.stats().samples > 0; });
  is_sampled = true;
  CpuBounds all;
  for (std::size_t i = 0; i < work.size(); ++i) {
    ASSERT_EQ(pthread_join(threads[i], nullptr), 0);
    all += work[i].bounds;
  }
  pthread_attr_destroy(&attributes);
  ASSERT_TRUE(profiler.Stop().ok());
  ExpectAccounted(KeptProfiles::Take(), "small", all);
}

// Neither the default size of a thread's stack nor the size of the caller's is large enough for our
// own threads. With real names.
TEST(SmallStacks, SessionOfAProgramWhoseThreadsHaveSixteenKibibytes) {
  if (testing::kIsSanitized) GTEST_SKIP() << "the sanitizers' own frames need more";
  pthread_attr_t before;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_t small;
  ASSERT_EQ(pthread_attr_init(&small), 0);
  const long least = sysconf(_SC_THREAD_STACK_MIN);
  ASSERT_EQ(pthread_attr_setstacksize(
                &small,
                std::max<std::size_t>(16 * 1024, least > 0 ? static_cast<std::size_t>(least) : 0)),
            0);
  ASSERT_EQ(pthread_setattr_default_np(&small), 0);
  KeptProfiles::Take();
  NamedProfiler profiler(AtMostRate());
  CpuBounds bounds;
  std::thread([&] {
    ASSERT_TRUE(profiler.Start().ok());
    bounds = RunRegistered(profiler, "small", [&] {
      WorkUntilSampledIn(profiler, "WorkOnSmallStack", WorkOnSmallStack);
    });
    ASSERT_TRUE(profiler.Stop().ok());
  }).join();
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&small);
  const auto kept = KeptProfiles::Take();
  ExpectAccounted(kept, "small", bounds);
}

bool HasAlternateStack() {
  stack_t now{};
  return sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0;
}

// Works where the stack has room for a few calls, but not for the kernel's frame of a signal.
__attribute__((noinline)) void SpinAtTheEndOfTheStack(const std::atomic<bool>& is_done) {
  constexpr std::size_t kLeftBytes = 2560;
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::size_t used = here - reinterpret_cast<std::uintptr_t>(low) - kLeftBytes;
  auto* const filler = static_cast<volatile char*>(__builtin_alloca(used));
  for (std::size_t i = 0; i < used; i += 1024) filler[i] = 1;
  while (!is_done.load(std::memory_order_relaxed)) filler[0] = filler[0] + 1;
}

// With 16 KiB, all but 3 in use: without an alternate stack the system ends the program.
TEST(SmallStacks, ASignalNeedsNoRoomOnASmallStack) {
  if (testing::kIsSanitized) GTEST_SKIP() << "the sanitizers' own frames need more";
  KeptProfiles::Take();
  struct Work {
    testing::KeepingProfiler profiler{AtMostRate()};
    std::atomic<bool> is_done{false};
    bool had_own = false;
    bool has_none_after = false;
  } work;
  ASSERT_TRUE(work.profiler.Start().ok());
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  const long least = sysconf(_SC_THREAD_STACK_MIN);
  ASSERT_EQ(pthread_attr_setstacksize(
                &attributes,
                std::max<std::size_t>(16 * 1024, least > 0 ? static_cast<std::size_t>(least) : 0)),
            0);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    Work& own = *static_cast<Work*>(argument);
    {
      const Registration registration = own.profiler.RegisterThread("full");
      own.had_own = HasAlternateStack();
      SpinAtTheEndOfTheStack(own.is_done);
    }
    own.has_none_after = !HasAlternateStack();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  WaitUntil([&] { return work.profiler.stats().samples > 0; });
  work.is_done = true;
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  EXPECT_TRUE(work.had_own);
  EXPECT_TRUE(work.has_none_after);
  ASSERT_TRUE(work.profiler.Stop().ok());
}

TEST(SmallStacks, AThreadKeepsTheAlternateStackOfTheOtherProfiler) {
  if (testing::kIsSanitized) GTEST_SKIP() << "AddressSanitizer gives each thread one";
  NamedProfiler one({.threads = {.least_stack_bytes = 1 << 30}});
  NamedProfiler two({.threads = {.least_stack_bytes = 1 << 30}});
  NamedProfiler none({.threads = {.least_stack_bytes = 0}});
  std::thread([&] {
    Registration first = one.RegisterThread("first");
    {
      const Registration without = none.RegisterThread("without");
      const Registration second = two.RegisterThread("second");
      first = Registration();
      EXPECT_TRUE(HasAlternateStack());
    }
    EXPECT_FALSE(HasAlternateStack());
  }).join();
}

// The handler runs on the thread's alternate stack, and the walk goes over the thread's own.
TEST(SmallStacks, AlternateSignalStack) {
  KeptProfiles::Take();
  NamedProfiler profiler(AtMostRate());
  ASSERT_TRUE(profiler.Start().ok());
  const std::size_t size = std::max<std::size_t>(testing::kIsSanitized ? 256 * 1024 : 16 * 1024,
                                                 static_cast<std::size_t>(SIGSTKSZ));
  std::vector<unsigned char> memory(size, 0xA5);
  CpuBounds bounds;
  std::thread([&] {
    stack_t previous{};
    stack_t own{};
    own.ss_sp = memory.data();
    own.ss_size = memory.size();
    ASSERT_EQ(sigaltstack(&own, &previous), 0);
    bounds = RunRegistered(profiler, "alternate", [&] {
      WorkUntilSampledIn(profiler, "WorkOnSmallStack", WorkOnSmallStack);
      WorkUntil([&] { return profiler.stats().samples > 0; }, WorkOnSmallStack);
    });
    ASSERT_EQ(sigaltstack(&previous, nullptr), 0);
  }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  const auto kept = KeptProfiles::Take();
  ExpectAccounted(kept, "alternate", bounds);
  EXPECT_TRUE(std::any_of(memory.begin(), memory.end(), [](unsigned char byte) {
    return byte != 0xA5;
  })) << "no thread ran on it";
}

// What runs on a coroutine's stack is sampled; of the stack only what is known to be readable is
// walked.
TEST(SmallStacks, Coroutine) {
  if (testing::kIsThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer does not follow swapcontext";
  KeptProfiles::Take();
  NamedProfiler profiler(AtMostRate());
  ASSERT_TRUE(profiler.Start().ok());
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t size = 64 * 1024;
  // The page above the coroutine's stack cannot be read: a walk that went on would fault.
  void* memory =
      mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(memory) + size, page, PROT_NONE), 0);
  static ucontext_t caller;
  static ucontext_t coroutine;
  ASSERT_EQ(getcontext(&coroutine), 0);
  coroutine.uc_stack.ss_sp = memory;
  coroutine.uc_stack.ss_size = size;
  coroutine.uc_link = nullptr;
  makecontext(
      &coroutine,
      [] {
        while (true) {
          WorkOnSmallStack();
          swapcontext(&coroutine, &caller);
        }
      },
      0);
  const CpuBounds bounds = RunRegistered(profiler, "coroutine", [&] {
    WorkUntilSampledIn(profiler, "WorkOnSmallStack", [] {
      swapcontext(&caller, &coroutine);
      BurnCpu(1'000'000);
    });
  });
  ASSERT_TRUE(profiler.Stop().ok());
  const auto kept = KeptProfiles::Take();
  ExpectAccounted(kept, "coroutine", bounds);
  munmap(memory, size + page);
}

// A coroutine that leaves no more below itself than what a signal needs: the kernel's frame, and
// the handler's 1 KiB. The page below cannot be written to.
TEST(SmallStacks, CoroutineWithRoomForTheKernelsFrameAndOneKibibyte) {
#ifndef __OPTIMIZE__
  GTEST_SKIP() << "without optimisation the handler needs more";
#endif
  if (testing::kIsSanitized) GTEST_SKIP() << "the sanitizers' own frames need more";
  constexpr std::size_t kOwnBytes = 512;  // the coroutine's own frames
  const std::size_t kernel_bytes = getauxval(AT_MINSIGSTKSZ);
  if (kernel_bytes == 0) GTEST_SKIP() << "the kernel does not say how large its frame is";
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t size = (kernel_bytes + 1024 + kOwnBytes + 63) / 64 * 64;
  const std::size_t mapped = page + (size + page - 1) / page * page;
  auto* const memory = static_cast<char*>(
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory, page, PROT_NONE), 0);
  NamedProfiler profiler(AtMostRate());
  ASSERT_TRUE(profiler.Start().ok());
  static ucontext_t caller;
  static ucontext_t coroutine;
  static bool are_enough = false;
  ASSERT_EQ(getcontext(&coroutine), 0);
  coroutine.uc_stack.ss_sp = memory + page;
  coroutine.uc_stack.ss_size = size;
  coroutine.uc_link = &caller;
  makecontext(
      &coroutine,
      [] {
        // There is no room to ask a clock. So many rounds take a minute or more.
        constexpr std::uint64_t kMostRounds = 60'000'000'000;
        const auto walks = [] {
          return testing::walks_by_this_thread.load(std::memory_order_relaxed);
        };
        const int wanted = walks() + 20;
        for (std::uint64_t i = 0; i < kMostRounds && walks() < wanted; ++i) {
        }
        are_enough = walks() >= wanted;
      },
      0);
  RunRegistered(profiler, "tight", [] { swapcontext(&caller, &coroutine); });
  EXPECT_TRUE(are_enough);
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_GT(SumByName(KeptProfiles::Take(), "cpu").at("tight"), 0);
  munmap(memory, mapped);
}

}  // namespace
}  // namespace strobe
