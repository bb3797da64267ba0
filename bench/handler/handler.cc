// What does the handler ask of the thread that it interrupts? Measured within HandleSignal, on
// stacks of 36 frames of generated functions without frame pointers:
//   time            the median and the 99th percentile; cold: the L2 cache was filled before
//   stack           bytes below the frame that the kernel made, found by paint
//   system calls    counted by the kernel, which stops each one
//   memory          what a thread's walks keep, and its pages that are there then
#include <linux/prctl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench_session.h"
#include "platform/linux/signals/signal_handler.h"

namespace strobe::testing {
namespace {

constexpr int kMeasuredSignal = SIGUSR1;
constexpr std::size_t kWarmingTurns = 500;
constexpr std::size_t kTurns = 4000;
constexpr std::size_t kColdTurns = 2000;
constexpr std::size_t kOtherTurns = 200;

void Install(int signal, void (*handler)(int, siginfo_t*, void*),
             bool lets_sigsys_through = false) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  if (lets_sigsys_through) sigdelset(&action.sa_mask, SIGSYS);
  sigaction(signal, &action, nullptr);
}

// Time.
std::vector<double> times_ns;  // has room

void TimeHandler(int signal, siginfo_t* info, void* context) {
  MonotonicNs();  // the clock itself is warm
  const std::int64_t begin_ns = MonotonicNs();
  internal::HandleSignal(signal, info, context);
  times_ns.push_back(static_cast<double>(MonotonicNs() - begin_ns));
}

// Stack.
constexpr std::size_t kPaintedBytes = 16 * 1024;
constexpr std::size_t kUnpaintedBytes = 256;  // of the painter's own; the handler uses more
constexpr unsigned char kPaint = 0xA5;
std::size_t stack_bytes = 0;

__attribute__((noinline)) void Paint(const unsigned char* top) {
  for (std::size_t i = kUnpaintedBytes; i < kPaintedBytes; ++i)
    const_cast<volatile unsigned char*>(top)[-static_cast<std::ptrdiff_t>(i)] = kPaint;
}
__attribute__((noinline)) std::size_t CountChanged(const unsigned char* top) {
  std::size_t bytes = kPaintedBytes - 1;
  while (bytes > kUnpaintedBytes && const_cast<const volatile unsigned char*>(
                                        top)[-static_cast<std::ptrdiff_t>(bytes)] == kPaint)
    --bytes;
  return bytes;
}
// Where the frame of a function called from here begins, the handler's among them.
__attribute__((noinline)) const unsigned char* FrameOfCallee() {
  asm volatile("");  // not a constant function
  return static_cast<const unsigned char*>(__builtin_frame_address(0));
}

void MeasureStack(int signal, siginfo_t* info, void* context) {
  const unsigned char* const top = FrameOfCallee();
  Paint(top);
  internal::HandleSignal(signal, info, context);
  stack_bytes = std::max(stack_bytes, CountChanged(top));
}

// System calls.
volatile char selector = SYSCALL_DISPATCH_FILTER_ALLOW;
volatile std::size_t system_calls = 0;

void CountSystemCalls(int signal, siginfo_t* info, void* context) {
  selector = SYSCALL_DISPATCH_FILTER_BLOCK;
  internal::HandleSignal(signal, info, context);
  selector = SYSCALL_DISPATCH_FILTER_ALLOW;
}

void NoteSystemCall(int /*signal*/, siginfo_t* /*info*/, void* /*context*/) {
  selector =
      SYSCALL_DISPATCH_FILTER_ALLOW;  // for the return from here, and for the rest of this sample
  system_calls = system_calls + 1;
}

class HandlerBench {
 public:
  [[nodiscard]] bool ok() const { return session_.ok(); }

  void Time(StackCase stacks, const std::string& name, std::size_t turns, void (*before_each)()) {
    Install(kMeasuredSignal, TimeHandler);
    times_ns.clear();
    times_ns.reserve(kWarmingTurns + turns);
    Deliver(stacks, kWarmingTurns + turns, before_each);
    times_ns.erase(times_ns.begin(), times_ns.begin() + kWarmingTurns);
    std::sort(times_ns.begin(), times_ns.end());
    Report(name, "strobe", "median", times_ns[times_ns.size() / 2], "ns");
    Report(name, "strobe", "99th percentile", times_ns[times_ns.size() * 99 / 100], "ns");
  }

  void Stack() {
    Install(kMeasuredSignal, MeasureStack);
    for (const StackCase stacks : {StackCase::kRepeated, StackCase::kRandom})
      Deliver(stacks, kOtherTurns, nullptr);
    Report("any stack", "strobe", "stack", static_cast<double>(stack_bytes), "B");
  }

  void SystemCalls() {
    Install(SIGSYS, NoteSystemCall);
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector) != 0) {
      std::fprintf(stderr,
                   "skipped: handler/system_calls (the kernel has no dispatch of system calls to "
                   "user space)\n");
      return;
    }
    Install(kMeasuredSignal, CountSystemCalls, /*lets_sigsys_through=*/true);
    // The counter works.
    selector = SYSCALL_DISPATCH_FILTER_BLOCK;
    getppid();
    const bool works = std::exchange(*const_cast<std::size_t*>(&system_calls), 0) == 1;
    for (const StackCase stacks :
         {StackCase::kRepeated, StackCase::kSharedRoots, StackCase::kRandom}) {
      Deliver(stacks, kOtherTurns, nullptr);
    }
    prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0);
    if (works) Report("any stack", "strobe", "system calls", static_cast<double>(system_calls), "");
  }

  void Memory() {
    auto& thread = session_.thread();
    const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t begin =
        reinterpret_cast<std::uintptr_t>(&thread.channel->memo()) / page_bytes * page_bytes;
    const std::size_t bytes = reinterpret_cast<std::uintptr_t>(&thread.channel->memo()) +
                              sizeof(thread.channel->memo()) - begin;
    std::vector<unsigned char> pages((bytes + page_bytes - 1) / page_bytes);
    if (mincore(reinterpret_cast<void*>(begin), bytes, pages.data()) != 0) return;
    const auto resident = std::count_if(pages.begin(), pages.end(),
                                        [](unsigned char page) { return (page & 1) != 0; });
    Report("36 frames", "strobe", "memory per thread, at most", sizeof(thread.channel->memo()),
           "B");
    Report("36 frames", "strobe", "memory per thread, resident",
           static_cast<double>(resident) * static_cast<double>(page_bytes), "B");
  }

 private:
  void Deliver(StackCase stacks, std::size_t turns, void (*before_each)()) {
    Delivery delivery(MakeSignal(kEmptySignal, SI_QUEUE, 0), session_.Signal(kMeasuredSignal));
    delivery.before_each = before_each;
    session_.DeliverWhole(stacks, FunctionKind::kPlain, turns, delivery, [&] {
      if (delivery.turn <= kWarmingTurns) {
        session_.Drain();
      } else {
        session_.Discard();
      }
    });
  }

  BenchSession<DefaultTraits> session_;
};

int Run() {
  InstallEmptyHandler(kEmptySignal);
  HandlerBench bench;
  if (!bench.ok()) return 1;
  bench.Time(StackCase::kSharedRoots, "shared roots", kTurns, nullptr);
  bench.Time(StackCase::kRandom, "20k random stacks", kTurns, nullptr);
  bench.Time(StackCase::kSharedRoots, "cold shared roots", kColdTurns, EvictCache);
  bench.Time(StackCase::kRandom, "cold 20k random stacks", kColdTurns, EvictCache);
  bench.Memory();
  bench.Stack();
  bench.SystemCalls();
  return 0;
}

}  // namespace
}  // namespace strobe::testing

int main() { return strobe::testing::Run(); }
