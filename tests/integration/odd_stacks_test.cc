// Stacks that are not the thread's own: coroutines end at their own end, and a signal's handler on
// an alternate stack leads back to what it interrupted.
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
#include <thread>
#include <tuple>
#include <vector>

#include "collecting_exporter.h"
#include "named_stacks.h"

// See no_eh_frame.cc.
extern "C" int StartWithoutEhFrame(int (*work)());

namespace strobe::testing {

// Not in the anonymous namespace: these names are what a reader of the profile looks for.
volatile std::uint64_t odd_sink;

constexpr std::int64_t kBurstNs = 20'000'000;

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
  odd_sink = Dive(3, kBurstNs);
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
// Without a word on their frames. strobe_test_plain_loop counts down, with zero in the frame
// pointer; so does strobe_test_bare_loop, where the stack pointer is anywhere, and
// strobe_test_aligned_loop, whose caller has its own in rax. A coroutine's words are its rbp, rbx
// and r12 to r15, and what it goes on at.
extern "C" {
void strobe_test_plain(std::uint64_t steps);    // then strobe_test_plain_loop
void strobe_test_aligned(std::uint64_t steps);  // calls strobe_test_aligned_loop
void strobe_test_bare(std::uint64_t steps);     // then strobe_test_bare_loop, strobe_test_bare_end
void* strobe_test_make_coroutine(void* stack_end, void (*function)());
void strobe_test_switch(void** from, void* to);
}
static void* caller_of_assembler;
asm(R"(
  .pushsection .text
  .p2align 4
  .type strobe_test_plain, @function
strobe_test_plain:
  push %rbp
  xor %ebp, %ebp
  .size strobe_test_plain, . - strobe_test_plain
  .type strobe_test_plain_loop, @function
strobe_test_plain_loop:
  dec %rdi
  jnz strobe_test_plain_loop
  pop %rbp
  ret
  .size strobe_test_plain_loop, . - strobe_test_plain_loop
  .p2align 4
  .type strobe_test_bare, @function
strobe_test_bare:
  push %rbp
  xor %ebp, %ebp
  mov %rsp, %rax
  neg %rax
  and $-64, %rsp
  .size strobe_test_bare, . - strobe_test_bare
  .type strobe_test_bare_loop, @function
strobe_test_bare_loop:
  dec %rdi
  jnz strobe_test_bare_loop
  .size strobe_test_bare_loop, . - strobe_test_bare_loop
  .type strobe_test_bare_end, @function
strobe_test_bare_end:
  neg %rax
  mov %rax, %rsp
  pop %rbp
  ret
  .size strobe_test_bare_end, . - strobe_test_bare_end
  .p2align 4
  .type strobe_test_aligned, @function
strobe_test_aligned:
  push %rbp
  xor %ebp, %ebp
  mov %rsp, %rax
  and $-64, %rsp
  call strobe_test_aligned_loop
  mov %rax, %rsp
  pop %rbp
  ret
  .size strobe_test_aligned, . - strobe_test_aligned
  .type strobe_test_aligned_loop, @function
strobe_test_aligned_loop:
  dec %rdi
  jnz strobe_test_aligned_loop
  ret
  .size strobe_test_aligned_loop, . - strobe_test_aligned_loop
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

using Stacks = std::vector<NamedStack>;

// Only of those the test knows the true stack, and that each instruction's frame information is
// right: of the C library's that change stacks it is not.
bool IsJudged(const NamedStack& stack) { return stack.Has("Spin"); }

// One session at 500 Hz of one thread: a new one, or this, the initial one. A turn does body() ten
// times and until a stack has been seen that accepts(stack). Returns the judged stacks of the first
// turn in which all tables were there: before, a sample has a copy of only a part of its stack.
enum class On { kNewThread, kThisThread };
template <class Body, class Accepts>
Stacks Sample(Body&& body, const Accepts& accepts, On on = On::kNewThread) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 500}});
  EXPECT_TRUE(profiler.Start().ok());
  std::int64_t cpu_ns = 0;
  std::vector<CollectingExporter::Exported> exports, last;
  const auto run = [&] {
    const Registration registration = profiler.RegisterThread("odd");
    const std::int64_t begin_ns = ThreadCpuNs();
    std::uint64_t deferred = 0;
    do {
      deferred = profiler.stats().stacks_deferred;
      for (int i = 0; i < 10; ++i) body();
      WorkUntilStack(profiler, accepts, body);
      last = CollectingExporter::Take();
      exports.insert(exports.end(), last.begin(), last.end());
    } while (profiler.stats().stacks_deferred != deferred);
    cpu_ns = ThreadCpuNs() - begin_ns;
  };
  if (on == On::kThisThread) {
    run();
  } else {
    std::thread(run).join();
  }
  EXPECT_TRUE(profiler.Stop().ok());
  for (auto& exported : CollectingExporter::Take()) exports.push_back(std::move(exported));
  EXPECT_GE(SumOfThread(exports, "cpu", "odd"), cpu_ns) << "weight was lost";
  Stacks stacks = NamedStacksOf(last);
  std::erase_if(stacks, [](const NamedStack& stack) { return !IsJudged(stack); });
  return stacks;
}
template <class Body>
Stacks Sample(Body&& body, On on = On::kNewThread) {
  return Sample(body, IsJudged, on);
}

bool IsWhole(const NamedStack& stack) {
  const std::string& root = stack.frames.back();
  // "[libc.so.6]" is code without a name.
  return !root.starts_with("[") || root == "[coroutine]" || root.find(".so") != std::string::npos;
}
std::ptrdiff_t Count(const NamedStack& stack, const std::string& function) {
  return std::count(stack.frames.begin(), stack.frames.end(), "strobe::testing::" + function);
}
std::string Print(const NamedStack& stack) { return ::testing::PrintToString(stack.frames); }

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
  const Stacks stacks = Sample([] {
    const GuardedStack stack;
    RunCoroutine(stack, [] { odd_sink = Dive(5, kBurstNs); });
  });
  for (const NamedStack& stack : stacks) {
    const int first = stack.Find("Dive");
    // Six of it, the coroutine's first function and what that returns to, and nothing of the thread
    // that it runs on.
    EXPECT_EQ(stack.frames.size(), static_cast<std::size_t>(first) + 6 + 3) << Print(stack);
    EXPECT_EQ(stack.frames.back(), "[coroutine]");
    EXPECT_EQ(Count(stack, "Dive"), 6) << Print(stack);
  }
}

TEST_F(OddStacks, ACoroutinesStackMayBeDeeperThanOneCopy) {
  const Stacks stacks = Sample([] {
    const GuardedStack stack;
    RunCoroutine(stack, [] { odd_sink = Dive(150, kBurstNs); });  // 90 KiB
  });
  for (const NamedStack& stack : stacks) {
    EXPECT_EQ(stack.frames.back(), "[coroutine]") << Print(stack);
    EXPECT_EQ(Count(stack, "Dive"), 151) << Print(stack);
  }
}

// The index of the frame that the handler has interrupted.
int InterruptedIn(const NamedStack& stack) {
  const int handler = stack.Find("HandleOnAlternateStack");
  EXPECT_GE(handler, 0) << Print(stack);
  const int interrupted = stack.Find("Interrupted", std::max(handler, 0));
  EXPECT_GT(interrupted, handler) << Print(stack);
  return interrupted;
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
    Interrupted(100);
    Disable();
  };
  for (const NamedStack& stack : Sample(body, on)) {
    const int interrupted = InterruptedIn(stack);
    EXPECT_TRUE(IsWhole(stack)) << Print(stack);
    EXPECT_EQ(stack.Find("Interrupted", interrupted + 100), interrupted + 100) << Print(stack);
    EXPECT_GT(stack.frames.size(), static_cast<std::size_t>(interrupted) + 102)
        << "and on, to the thread's start";
    if (on == On::kThisThread) {
      EXPECT_EQ(stack.frames.back(), "_start");
    }
  }
}

TEST_F(OddStacks, AHandlerOnAnAlternateStackLeadsBackToTheCoroutineThatItInterrupted) {
  const Stacks stacks = Sample([] {
    const GuardedStack alternate;
    const GuardedStack stack;
    HandleOn(alternate.memory());
    RunCoroutine(stack, [] { Interrupted(4); });
    Disable();
  });
  for (const NamedStack& stack : stacks) {
    const int interrupted = InterruptedIn(stack);
    EXPECT_EQ(stack.Find("Interrupted", interrupted + 4), interrupted + 4);
    EXPECT_EQ(stack.frames.size(), static_cast<std::size_t>(interrupted) + 5 + 3) << Print(stack);
    EXPECT_EQ(stack.frames.back(), "[coroutine]");
  }
}

#if defined(__x86_64__)
// As in Boost.Context: there is no frame information, and the first function returns to an address
// that does not follow a call.
TEST_F(OddStacks, ACoroutineOfAssemblerIsWhole) {
  const Stacks stacks = Sample([] {
    const GuardedStack stack;
    void* const coroutine = strobe_test_make_coroutine(stack.data() + stack.bytes(), [] {
      odd_sink = Dive(5, kBurstNs);
      void* unused = nullptr;
      strobe_test_switch(&unused, caller_of_assembler);
    });
    strobe_test_switch(&caller_of_assembler, coroutine);
  });
  for (const NamedStack& stack : stacks) {
    EXPECT_EQ(stack.frames.back(), "[coroutine]") << Print(stack);
    EXPECT_EQ(Count(stack, "Dive"), 6) << Print(stack);
  }
}

TEST_F(OddStacks, CodeThatSaysNothingOfItsFramesIsDecoded) {
  const Stacks stacks = Sample(
      [] { strobe_test_plain(30'000'000); },
      [](const NamedStack& stack) { return stack.frames.front() == "strobe_test_plain_loop"; });
  for (const NamedStack& stack : stacks) EXPECT_TRUE(IsWhole(stack)) << Print(stack);
}

TEST_F(OddStacks, AlignedCodeIsFollowedByTheRegisterThatItsCalleeLeavesAlone) {
  const Stacks stacks = Sample(
      [] { strobe_test_aligned(30'000'000); },
      [](const NamedStack& stack) { return stack.frames.front() == "strobe_test_aligned_loop"; });
  for (const NamedStack& stack : stacks) EXPECT_TRUE(IsWhole(stack)) << Print(stack);
}

// A signal that comes before the loop, or after it, finds the caller's frame pointer.
TEST_F(OddStacks, CodeThatSaysNothingOfItsFramesIsNoStacksEnd) {
  bool has_other_end = false;
  Sample([] { strobe_test_bare(30'000'000); },
         [&](const NamedStack& stack) {
           const bool is_bare = stack.frames.front() == "strobe_test_bare_loop";
           has_other_end |= is_bare && stack.frames.back() != "[no unwind info]";
           return is_bare;
         });
  EXPECT_FALSE(has_other_end);
}
#endif

// A page of a coroutine's stack is gone, as after a mistake of the program: the walk ends there, in
// so many words.
TEST_F(OddStacks, MemoryThatIsNotThereEndsAStackAndNothingElse) {
  static const GuardedStack* guarded;
  const Stacks stacks = Sample([] {
    const GuardedStack stack;
    guarded = &stack;
    RunCoroutine(stack, [] {
      // Nothing returns through it before it is back.
      auto* const upper_half = guarded->data() + kStackBytes - 16 * 1024;
      const auto burn_without = [](auto&& self, int depth, std::byte* missing) -> std::uint64_t {
        volatile std::uint64_t room[256] = {};
        if (depth > 0) return self(self, depth - 1, missing) + room[0];
        EXPECT_EQ(mprotect(missing, 16 * 1024, PROT_NONE), 0);
        Spin(kBurstNs);
        EXPECT_EQ(mprotect(missing, 16 * 1024, PROT_READ | PROT_WRITE), 0);
        return room[0];
      };
      odd_sink = burn_without(burn_without, 20, upper_half);
    });
  });
  for (const NamedStack& stack : stacks)
    EXPECT_EQ(stack.frames.back(), "[broken stack]") << Print(stack);
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
  const Stacks stacks = Sample(
      [] {
        static ucontext_t caller;
        ucontext_t context;
        ASSERT_EQ(getcontext(&context), 0);
        context.uc_stack = {.ss_sp = data, .ss_flags = 0, .ss_size = kSmallBytes};
        context.uc_link = &caller;
        makecontext(
            &context, [] { odd_sink = Dive(3, kBurstNs); }, 0);
        ASSERT_EQ(swapcontext(&caller, &context), 0);
      },
      On::kThisThread);
  munmap(stack, kSmallBytes);
  for (const NamedStack& sampled : stacks) {
    EXPECT_EQ(sampled.frames.back(), "[coroutine]") << Print(sampled);
    EXPECT_EQ(Count(sampled, "Dive"), 4) << Print(sampled);
  }
}

TEST_F(OddStacks, CodeWithoutEhFrameIsLeftByItsFilesDebugFrame) {
  const Stacks stacks = Sample([] {
    odd_sink = static_cast<std::uint64_t>(StartWithoutEhFrame([] {
      Spin(kBurstNs);
      return static_cast<int>(odd_sink);
    }));
  });
  for (const NamedStack& stack : stacks) {
    const auto start = std::find(stack.frames.begin(), stack.frames.end(), "StartWithoutEhFrame");
    EXPECT_NE(start, stack.frames.end()) << Print(stack);
    EXPECT_EQ(std::count(stack.frames.begin(), start, "CallWithoutEhFrame"), 4) << Print(stack);
    EXPECT_GT(stack.frames.end() - start, 2) << "and on, to the thread's start";
    EXPECT_TRUE(IsWhole(stack)) << Print(stack);
  }
}

__attribute__((noinline)) std::uint64_t DiveFar(int depth, std::int64_t cpu_ns) {
  volatile std::uint64_t room[2048] = {};
  room[1] = depth == 0 ? Dive(1, cpu_ns) : DiveFar(depth - 1, cpu_ns);
  return room[1] + 1;
}

TEST_F(OddStacks, TheInitialThreadsStackIsWholeHoweverFarItHasGrown) {
  for (const int depth : {1, 20, 200}) {  // 3 MiB
    const Stacks stacks = Sample([depth] { odd_sink = DiveFar(depth, kBurstNs); }, On::kThisThread);
    for (const NamedStack& stack : stacks) EXPECT_EQ(stack.frames.back(), "_start") << Print(stack);
  }
}

}  // namespace
}  // namespace strobe::testing
