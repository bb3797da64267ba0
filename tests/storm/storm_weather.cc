#include "storm_weather.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "strobe/platform/capture_target.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

// Code that its samples are known by. Whatever stack a thread is on when it comes here, the walk
// from here on is by frame information that is right at each instruction.
[[gnu::noinline, gnu::section("storm_spin")]] void Spin(int rounds) {
  std::uint64_t value = 1;
  for (int i = 0; i < rounds; ++i) {
    value = value * 6364136223846793005U + 1442695040888963407U;
    asm volatile("" : "+r"(value));
  }
}

[[gnu::noinline]] void Throw(int depth) {
  const std::string in_the_way(static_cast<std::size_t>(depth) * 8, 'x');
  if (depth == 0) throw std::runtime_error("storm");
  Throw(depth - 1);
  asm volatile("" : : "r"(in_the_way.data()) : "memory");
}

// Recursion without frame pointers in a pattern that no unwinder can guess: each depth has a frame
// of another size.
[[gnu::noinline]] int Recurse(int depth, int rounds) {
  if (depth == 0) {
    Spin(rounds);
    return 1;
  }
  auto* const room =
      static_cast<volatile char*>(__builtin_alloca(static_cast<std::size_t>(depth) * 24 + 16));
  room[0] = 1;
  return Recurse(depth - 1, rounds) + room[0];
}

// Alternate stacks.
thread_local sigjmp_buf way_out;
thread_local bool leaves_by_jump = false;

void OnAlternateStack(int /*signal*/) {
  Recurse(10, 2000);
  if (leaves_by_jump) siglongjmp(way_out, 1);
}

// Gives the thread an alternate stack for as long as it lives.
struct AlternateStack {
  std::unique_ptr<std::byte[]> memory = std::make_unique<std::byte[]>(kStackBytes);
  AlternateStack() {
    stack_t stack{};
    stack.ss_sp = memory.get();
    stack.ss_size = kStackBytes;
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_handler = &OnAlternateStack;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
  }
  ~AlternateStack() {
    stack_t stack{};
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
  }
};

// Coroutines.
struct Coroutines {
  static constexpr std::size_t kCount = 4;
  std::array<ucontext_t, kCount> contexts{};
  std::array<std::unique_ptr<std::byte[]>, kCount> stacks;
  ucontext_t caller{};
  std::size_t current = 0;

  Coroutines() {
    for (std::size_t i = 0; i < kCount; ++i) {
      stacks[i] = std::make_unique<std::byte[]>(kStackBytes);
      Make(contexts[i], stacks[i].get());
    }
  }
  // On its own: getcontext may return twice, so no variable of a loop may be live around it.
  __attribute__((noinline)) static void Make(ucontext_t& context, std::byte* stack) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = kStackBytes;
    makecontext(&context, &Coroutines::Run, 0);
  }
  static Coroutines& Get() {
    static auto* const coroutines = new Coroutines;
    return *coroutines;
  }
  static void Run() {
    while (true) {
      Recurse(20, 500);
      ThrowAndCatch(3);
      Coroutines& all = Get();
      swapcontext(&all.contexts[all.current], &all.caller);
    }
  }
};

void RunChild(StormProfiler& profiler, bool profiles_itself) {
  ThrowAndCatch(5);
  Allocate(7);
  if (!profiles_itself) return;
  Totals::Take();
  STROBE_CHILD_CHECK(profiler.Start().ok());
  const CpuBounds bounds = RunRegistered(profiler, "child", [] {
    for (int i = 0; i < 20; ++i) ThrowAndCatch(i);
  });
  STROBE_CHILD_CHECK(profiler.Stop().ok());
  const auto sums = Totals::Take();
  STROBE_CHILD_CHECK(sums.size() == 1 && sums.contains("child"));
  STROBE_CHILD_CHECK(sums.at("child").cpu_ns >= bounds.low_ns &&
                     sums.at("child").cpu_ns <= bounds.high_ns);
}

}  // namespace

Pesterer::Pesterer() {
  internal::ChannelToken token = *internal::RegistrationLinks()->token;
  token.provider = StormTraits::kExpiryProvider;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = NativePlatform::DefaultSignal();
  event.sigev_value.sival_ptr = reinterpret_cast<void*>(token.Pack());
  event._sigev_un._tid = gettid();
  const itimerspec times{.it_interval = {0, kPeriodNs}, .it_value = {0, kPeriodNs}};
  const bool is_started = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0 &&
                          timer_settime(timer_, 0, &times, nullptr) == 0;
  testing::Check(is_started, "the system refuses a timer");
}
Pesterer::~Pesterer() { timer_delete(timer_); }

void ThrowAndCatch(int depth) {
  try {
    Throw(depth);
  } catch (const std::runtime_error&) {
    Spin(10);
  }
}

void Allocate(unsigned seed) {
  std::vector<std::unique_ptr<char[]>> blocks(64);
  for (unsigned i = 0; i < 512; ++i) {
    seed = seed * 1664525 + 1013904223;
    const std::size_t bytes = std::size_t{16} << (seed >> 16) % 14;
    auto& block = blocks[seed >> 8 & 63];
    block = std::make_unique_for_overwrite<char[]>(bytes);
    std::memset(block.get(), 1, std::min<std::size_t>(bytes, 256));
  }
}

bool LoadCallUnload(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  auto* const run = reinterpret_cast<int (*)(int)>(dlsym(library, "StormPluginRun"));
  for (int i = 0; run != nullptr && i < 50; ++i) run(i % 10);
  dlclose(library);
  return run != nullptr;
}

const char* ProfileBySecondCopy(const char* path) {
  static auto* const run = [path]() -> const char* (*)() {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library == nullptr
               ? nullptr
               : reinterpret_cast<const char* (*)()>(dlsym(library, "StormSecondCopyRun"));
  }();
  return run == nullptr ? "the second copy cannot be loaded" : run();
}

void TakeSignals() {
  thread_local const AlternateStack stack;
  for (int i = 0; i < 20; ++i) {
    // A jump off the alternate stack is none that AddressSanitizer follows.
    leaves_by_jump = !kIsSanitized && i % 2 == 1;
    if (sigsetjmp(way_out, 1) == 0) raise(SIGUSR1);
  }
}

void SwitchCoroutines() {
  Coroutines& all = Coroutines::Get();
  for (std::size_t i = 0; i < 100; ++i) {
    all.current = i % Coroutines::kCount;
    swapcontext(&all.caller, &all.contexts[all.current]);
  }
}

bool ForkAndWait(StormProfiler& profiler, bool profiles_itself) {
  return RunInChild([&] { RunChild(profiler, profiles_itself); }) == 0;
}

}  // namespace strobe::testing
