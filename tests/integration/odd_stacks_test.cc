// Stacks that are not the thread's own: coroutines end at their own end, and a signal's handler on
// an alternate stack leads back to what it interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "collecting_exporter.h"
#include "strobe/testing/pprof_reader.h"

// See no_eh_frame.cc.
extern "C" int StartWithoutEhFrame(int (*work)());

namespace strobe::testing {

// Not in the anonymous namespace: these names are what a reader of the profile looks for.
volatile std::uint64_t odd_sink;

__attribute__((noinline)) void Spin(std::int64_t cpu_ns) {
  BurnCpu(cpu_ns);
  odd_sink = 1;
}
// Deeper than one copy of a stack.
__attribute__((noinline)) std::uint64_t Dive(int depth, std::int64_t cpu_ns) {
  volatile std::uint64_t room[64] = {};
  if (depth == 0) {
    Spin(cpu_ns);
  } else {
    room[0] = Dive(depth - 1, cpu_ns);
  }
  return room[0] + 1;
}
__attribute__((noinline)) void HandleOnAlternateStack(int /*signal*/) {
  odd_sink = Dive(3, 20'000'000);
  odd_sink = 2;
}
__attribute__((noinline)) void Interrupted(int depth) {
  volatile std::uint64_t room[64] = {};
  if (depth == 0) {
    raise(SIGUSR1);
  } else {
    Interrupted(depth - 1);
  }
  odd_sink = room[1] + 3;
}

#if defined(__x86_64__)
// Without a word on their frames. strobe_test_bare counts down, with zero in the frame pointer. A
// coroutine's words are its rbp, rbx and r12 to r15, and what it goes on at.
extern "C" {
void strobe_test_bare(std::uint64_t steps);
void* strobe_test_make_coroutine(void* stack_end, void (*function)());
void strobe_test_switch(void** from, void* to);
}
static void* caller_of_assembler;
asm(R"(
  .pushsection .text
  .p2align 4
  .type strobe_test_bare, @function
strobe_test_bare:
  push %rbp
  xor %ebp, %ebp
1: dec %rdi
  jnz 1b
  pop %rbp
  ret
  .size strobe_test_bare, . - strobe_test_bare
  .p2align 4
  .type strobe_test_make_coroutine, @function
strobe_test_make_coroutine:
  lea -0x48(%rdi), %rax
  lea 3f(%rip), %rcx
  mov %rcx, (%rax)
  mov %rsi, 0x8(%rax)
  lea 2f(%rip), %rcx
  mov %rcx, 0x30(%rax)
  ret
2: push %rbp
  jmp *%rbx
3: xor %rdi, %rdi
  call _exit@PLT
  hlt
  .size strobe_test_make_coroutine, . - strobe_test_make_coroutine
  .p2align 4
  .type strobe_test_switch, @function
strobe_test_switch:
  push %r15
  push %r14
  push %r13
  push %r12
  push %rbx
  push %rbp
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %rbp
  pop %rbx
  pop %r12
  pop %r13
  pop %r14
  pop %r15
  ret
  .size strobe_test_switch, . - strobe_test_switch
  .popsection
)");
#endif

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;

// Memory with nothing mapped to either side of it.
class GuardedStack {
 public:
  explicit GuardedStack(std::size_t bytes = kStackBytes) : bytes_(bytes) {
    all_ = static_cast<std::byte*>(
        mmap(nullptr, bytes + 2 * kGuardBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(data(), bytes, PROT_READ | PROT_WRITE), 0);
  }
  ~GuardedStack() { munmap(all_, bytes_ + 2 * kGuardBytes); }
  GuardedStack(const GuardedStack&) = delete;
  GuardedStack& operator=(const GuardedStack&) = delete;
  [[nodiscard]] std::byte* data() const { return all_ + kGuardBytes; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> memory() const { return {data(), bytes_}; }

 private:
  static constexpr std::size_t kGuardBytes = 64 * 1024;
  std::byte* all_;
  const std::size_t bytes_;
};

struct Sampled {
  PprofProfile profile;
  std::int64_t complete = 0;
  std::int64_t incomplete = 0;
};

// One session at 500 Hz of one thread: a new one, or this, the initial one.
enum class On { kNewThread, kThisThread };
template <class Body>
std::int64_t RunSession(BasicProfiler<CollectingTraits>& profiler, Body&& body, On on) {
  EXPECT_TRUE(profiler.Start().ok());
  std::int64_t cpu_ns = 0;
  const auto run = [&] {
    const Registration registration = profiler.RegisterThread("odd");
    const std::int64_t begin_ns = ThreadCpuNs();
    body();
    cpu_ns = ThreadCpuNs() - begin_ns;
  };
  if (on == On::kThisThread) {
    run();
  } else {
    std::thread(run).join();
  }
  EXPECT_TRUE(profiler.Stop().ok());
  return cpu_ns;
}

// The second of two, so that the tables of all that is executed are there: the first stacks of a
// program may be cut for want of them.
template <class Body>
Sampled Sample(Body&& body, On on = On::kNewThread) {
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 500}});
  RunSession(profiler, body, on);
  CollectingExporter::Take();
  const std::int64_t cpu_ns = RunSession(profiler, body, on);
  const auto exports = CollectingExporter::Take();
  EXPECT_EQ(exports.size(), 1U);
  EXPECT_GE(SumOfThread(exports, "cpu", "odd"), cpu_ns) << "weight was lost";
  Sampled sampled;
  const auto& ends = exports.at(0).profile.stats.stack_ends;
  for (std::size_t end = 0; end < ends.size(); ++end) {
    (strobe::IsWhole(static_cast<StackEnd>(end)) ? sampled.complete : sampled.incomplete) +=
        static_cast<std::int64_t>(ends[end]);
  }
  const auto profile = ReadPprof(exports.at(0).bytes);
  EXPECT_TRUE(profile.has_value());
  if (profile.has_value()) {
    EXPECT_EQ(CheckPprof(*profile), "");
    sampled.profile = *profile;
  }
  return sampled;
}

// Nearly all stacks are whole; a signal may also come where the frame information of the C library
// is at fault.
void ExpectWhole(const Sampled& sampled) {
  EXPECT_GT(sampled.complete, 5);
  EXPECT_LE(sampled.incomplete, 2 + sampled.complete / 50);
}
bool IsWhole(const std::vector<std::string>& stack) {
  // "[libc.so.6]" is code without a name.
  return !stack.back().starts_with("[") || stack.back() == "[coroutine]" ||
         stack.back().find(".so") != std::string::npos;
}

// The index of the first frame, from `begin` on, of that function; -1 where there is none.
int FindFrame(const std::vector<std::string>& stack, std::string_view function, int begin = 0) {
  for (std::size_t i = static_cast<std::size_t>(begin); i < stack.size(); ++i) {
    if (stack[i] == "strobe::testing::" + std::string(function)) return static_cast<int>(i);
  }
  return -1;
}

// Runs `body` on a stack of its own, as a coroutine.
void RunCoroutine(const GuardedStack& stack, void (*body)()) {
  static thread_local ucontext_t caller;
  ucontext_t context;
  ASSERT_EQ(getcontext(&context), 0);
  context.uc_stack = {.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.bytes()};
  context.uc_link = &caller;
  makecontext(&context, body, 0);
  ASSERT_EQ(swapcontext(&caller, &context), 0);
}

class OddStacks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSignalsAreLate)
      GTEST_SKIP() << "ThreadSanitizer delivers signals late: stacks mean nothing";
  }
  // What raises SIGUSR1 runs HandleOnAlternateStack on `stack` from now on.
  static void HandleOn(std::span<std::byte> stack) {
    const stack_t alternate{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
    ASSERT_EQ(sigaltstack(&alternate, nullptr), 0);
    struct sigaction action {};
    action.sa_handler = &HandleOnAlternateStack;
    action.sa_flags = SA_ONSTACK;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  }
  static void Disable() {
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    ASSERT_EQ(sigaltstack(&none, nullptr), 0);
  }
};

TEST_F(OddStacks, ACoroutineEndsAtItsOwnEnd) {
  const Sampled sampled = Sample([] {
    const GuardedStack stack;
    RunCoroutine(stack, [] { odd_sink = Dive(5, 300'000'000); });
  });
  ExpectWhole(sampled);
  std::int64_t whole_ns = 0;
  for (const PprofProfile::Sample& sample : sampled.profile.samples) {
    const std::vector<std::string> stack = sampled.profile.Stack(sample);
    const int first = FindFrame(stack, "Dive");
    if (first < 0 || !IsWhole(stack)) continue;
    // Six of it, the coroutine's first function and what that returns to, and nothing of the thread
    // that it runs on.
    EXPECT_EQ(stack.size(), static_cast<std::size_t>(first) + 6 + 3)
        << ::testing::PrintToString(stack);
    EXPECT_EQ(stack.back(), "[coroutine]");
    EXPECT_EQ(FindFrame(stack, "Dive", first + 5), first + 5);
    if (FindFrame(stack, "Spin") >= 0) whole_ns += sample.values.at(1);
  }
  EXPECT_GT(whole_ns, 200'000'000);
}

TEST_F(OddStacks, ACoroutinesStackMayBeDeeperThanOneCopy) {
  const Sampled sampled = Sample([] {
    const GuardedStack stack;
    RunCoroutine(stack, [] { odd_sink = Dive(150, 300'000'000); });  // 90 KiB
  });
  ExpectWhole(sampled);
}

// Calls `check` with each whole stack of a handler on an alternate stack, and where in it the
// function stands that was interrupted. Returns their CPU time.
template <class Check>
std::int64_t ForEachHandledStack(const Sampled& sampled, const Check& check) {
  std::int64_t whole_ns = 0;
  for (const PprofProfile::Sample& sample : sampled.profile.samples) {
    const std::vector<std::string> stack = sampled.profile.Stack(sample);
    const int handler = FindFrame(stack, "HandleOnAlternateStack");
    if (handler < 0 || !IsWhole(stack)) continue;
    const int interrupted = FindFrame(stack, "Interrupted", handler);
    EXPECT_GT(interrupted, handler) << ::testing::PrintToString(stack);
    if (interrupted > handler) check(stack, interrupted);
    whole_ns += sample.values.at(1);
  }
  return whole_ns;
}

// Some programs put the alternate stack into an outer function's frame: then what was interrupted
// lies below it.
class AlternateStacks : public OddStacks,
                        public ::testing::WithParamInterface<std::tuple<On, bool>> {};
INSTANTIATE_TEST_SUITE_P(Threads, AlternateStacks,
                         ::testing::Combine(::testing::Values(On::kNewThread, On::kThisThread),
                                            ::testing::Bool()));

TEST_P(AlternateStacks, AHandlerLeadsBackToTheThreadsFirstFunction) {
  const On on = std::get<0>(GetParam());
  const bool is_inside = std::get<1>(GetParam());
  const auto body = [is_inside] {
    const GuardedStack guarded;
    alignas(16) std::array<std::byte, 64 * 1024> inside;
    HandleOn(is_inside ? std::span<std::byte>(inside) : guarded.memory());
    for (int i = 0; i < 15; ++i) Interrupted(100);
    Disable();
  };
  const Sampled sampled = Sample(body, on);
  ExpectWhole(sampled);
  const std::int64_t whole_ns =
      ForEachHandledStack(sampled, [&](const std::vector<std::string>& stack, int interrupted) {
        EXPECT_EQ(FindFrame(stack, "Interrupted", interrupted + 100), interrupted + 100);
        EXPECT_GT(stack.size(), static_cast<std::size_t>(interrupted) + 102)
            << "and on, to the thread's start";
        EXPECT_EQ(stack.back(), on == On::kThisThread ? "_start" : stack.back());
      });
  EXPECT_GT(whole_ns, 200'000'000);
}

TEST_F(OddStacks, AHandlerOnAnAlternateStackLeadsBackToTheCoroutineThatItInterrupted) {
  const Sampled sampled = Sample([] {
    const GuardedStack alternate;
    const GuardedStack stack;
    HandleOn(alternate.memory());
    for (int i = 0; i < 15; ++i) RunCoroutine(stack, [] { Interrupted(4); });
    Disable();
  });
  ExpectWhole(sampled);
  ForEachHandledStack(sampled, [](const std::vector<std::string>& stack, int interrupted) {
    EXPECT_EQ(FindFrame(stack, "Interrupted", interrupted + 4), interrupted + 4);
    EXPECT_EQ(stack.size(), static_cast<std::size_t>(interrupted) + 5 + 3)
        << ::testing::PrintToString(stack);
    EXPECT_EQ(stack.back(), "[coroutine]");
  });
}

#if defined(__x86_64__)
// CPU time of the stacks with a function of that name that end so, and of all with it.
struct Share {
  std::int64_t so_ns = 0;
  std::int64_t all_ns = 0;
};
Share ShareWithEnd(const Sampled& sampled, std::string_view function, std::string_view end) {
  Share share;
  for (const PprofProfile::Sample& sample : sampled.profile.samples) {
    const std::vector<std::string> stack = sampled.profile.Stack(sample);
    const bool has_function = std::any_of(stack.begin(), stack.end(), [&](const auto& frame) {
      return frame.find(function) != frame.npos;
    });
    if (!has_function) continue;
    share.all_ns += sample.values.at(1);
    if (stack.back() == end) share.so_ns += sample.values.at(1);
  }
  return share;
}

// As in Boost.Context: there is no frame information, and the first function returns to an address
// that does not follow a call.
TEST_F(OddStacks, ACoroutineOfAssemblerIsWhole) {
  const Sampled sampled = Sample([] {
    const GuardedStack stack;
    void* const coroutine = strobe_test_make_coroutine(stack.data() + stack.bytes(), [] {
      odd_sink = Dive(5, 300'000'000);
      void* unused = nullptr;
      strobe_test_switch(&unused, caller_of_assembler);
    });
    strobe_test_switch(&caller_of_assembler, coroutine);
  });
  ExpectWhole(sampled);
  const Share share = ShareWithEnd(sampled, "strobe::testing::Dive", "[coroutine]");
  EXPECT_GT(share.all_ns, 200'000'000);
  EXPECT_GE(share.so_ns, share.all_ns * 9 / 10);
}

TEST_F(OddStacks, CodeThatSaysNothingOfItsFramesIsNoStacksEnd) {
  const Sampled sampled = Sample([] {
    const std::int64_t begin_ns = ThreadCpuNs();
    while (ThreadCpuNs() - begin_ns < 300'000'000) strobe_test_bare(10'000'000);
  });
  const Share share = ShareWithEnd(sampled, "strobe_test_bare", "[no unwind info]");
  EXPECT_GT(share.all_ns, 200'000'000);
  EXPECT_GE(share.so_ns, share.all_ns * 9 / 10)
      << "a signal may come before it has set the register";
}
#endif

// A page of a coroutine's stack is gone, as after a mistake of the program: the walk ends there, in
// so many words.
TEST_F(OddStacks, MemoryThatIsNotThereEndsAStackAndNothingElse) {
  static const GuardedStack* guarded;
  const Sampled sampled = Sample([] {
    const GuardedStack stack;
    guarded = &stack;
    RunCoroutine(stack, [] {
      // Nothing returns through it before it is back.
      auto* const upper_half = guarded->data() + kStackBytes - 16 * 1024;
      const auto burn_without = [](auto&& self, int depth, std::byte* missing) -> std::uint64_t {
        volatile std::uint64_t room[256] = {};
        if (depth > 0) return self(self, depth - 1, missing) + room[0];
        EXPECT_EQ(mprotect(missing, 16 * 1024, PROT_NONE), 0);
        Spin(200'000'000);
        EXPECT_EQ(mprotect(missing, 16 * 1024, PROT_READ | PROT_WRITE), 0);
        return room[0];
      };
      odd_sink = burn_without(burn_without, 20, upper_half);
    });
  });
  EXPECT_GT(sampled.incomplete, 5);
  std::int64_t broken_ns = 0;
  for (const PprofProfile::Sample& sample : sampled.profile.samples) {
    const std::vector<std::string> stack = sampled.profile.Stack(sample);
    if (FindFrame(stack, "Spin") >= 0 && stack.back() == "[broken stack]")
      broken_ns += sample.values.at(1);
  }
  EXPECT_GT(broken_ns, 100'000'000);
}

// Far below the initial thread's own stack, and yet no farther than that might grow: a small stack
// with nothing mapped above it.
TEST_F(OddStacks, AStackWhereTheInitialThreadsOwnMightGrowToIsNoPartOfIt) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_STACK, &limit), 0);
  constexpr rlim_t kEnough = rlim_t{512} << 20;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  ASSERT_EQ(setrlimit(RLIMIT_STACK, &limit), 0);
  constexpr std::size_t kSmallBytes =
      64 * 1024;  // of which little is used: a copy of 16 KiB reaches beyond it
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uintptr_t place =
      (here - std::min<std::uintptr_t>(limit.rlim_cur / 2, std::uintptr_t{64} << 20)) &
      ~std::uintptr_t{0xFFFF};
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* const stack = mmap(reinterpret_cast<void*>(place), kSmallBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (stack == MAP_FAILED) GTEST_SKIP() << "something is mapped below the stack";
  static std::byte* data;
  data = static_cast<std::byte*>(stack);
  const Sampled sampled = Sample(
      [] {
        static ucontext_t caller;
        ucontext_t context;
        ASSERT_EQ(getcontext(&context), 0);
        context.uc_stack = {.ss_sp = data, .ss_flags = 0, .ss_size = kSmallBytes};
        context.uc_link = &caller;
        makecontext(
            &context, [] { odd_sink = Dive(3, 300'000'000); }, 0);
        ASSERT_EQ(swapcontext(&caller, &context), 0);
      },
      On::kThisThread);
  ExpectWhole(sampled);
  munmap(stack, kSmallBytes);
}

TEST_F(OddStacks, CodeWithoutEhFrameIsLeftByItsFilesDebugFrame) {
  const Sampled sampled = Sample([] {
    odd_sink = static_cast<std::uint64_t>(StartWithoutEhFrame([] {
      Spin(300'000'000);
      return static_cast<int>(odd_sink);
    }));
  });
  ExpectWhole(sampled);
  std::int64_t whole_ns = 0;
  for (const PprofProfile::Sample& sample : sampled.profile.samples) {
    const std::vector<std::string> stack = sampled.profile.Stack(sample);
    const auto start = std::find(stack.begin(), stack.end(), "StartWithoutEhFrame");
    if (start == stack.end() || !IsWhole(stack)) continue;
    EXPECT_EQ(std::count(stack.begin(), start, "CallWithoutEhFrame"), 4)
        << ::testing::PrintToString(stack);
    EXPECT_GT(stack.end() - start, 2) << "and on, to the thread's start";
    whole_ns += sample.values.at(1);
  }
  EXPECT_GT(whole_ns, 200'000'000);
}

__attribute__((noinline)) std::uint64_t DiveFar(int depth, std::int64_t cpu_ns) {
  volatile std::uint64_t room[2048] = {};
  room[1] = depth == 0 ? Dive(1, cpu_ns) : DiveFar(depth - 1, cpu_ns);
  return room[1] + 1;
}

TEST_F(OddStacks, TheInitialThreadsStackIsWholeHoweverFarItHasGrown) {
  const Sampled sampled = Sample(
      [] {
        for (const int depth : {1, 20, 200}) odd_sink = DiveFar(depth, 100'000'000);  // 3 MiB
      },
      On::kThisThread);
  ExpectWhole(sampled);
}

}  // namespace
}  // namespace strobe::testing
