// How long a thread of 36 frames stands still while its stack is copied, and while it is unwound in
// place by RtlVirtualUnwind, as profilers do that have no tables of their own. Counted is from
// where GetThreadContext has returned, which is when the thread is sure to stand still, to its
// ResumeThread. What a frame costs by tables, windows_unwind says.
#include <windows.h>
// After it.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../report.h"
#include "../windows_walk.h"
#include "strobe/platform/windows/windows_platform.h"

namespace strobe::testing {
namespace {

constexpr int kDepth = 30;  // and the frames of the thread's start
constexpr std::size_t kMaxFrames = 256;
constexpr std::size_t kMaxStackBytes = std::size_t{1} << 20;

std::atomic<bool> is_ending{false};

// A frame of the size and with the saved registers of ordinary code.
__attribute__((noinline)) unsigned Recurse(int depth, unsigned a, unsigned b, unsigned c) {
  std::array<volatile unsigned, 24> local{};
  local[static_cast<std::size_t>(depth) % local.size()] = a;
  if (depth == 0) {
    while (!is_ending.load(std::memory_order_relaxed))
      local[b % local.size()] = local[b % local.size()] + c;
    return local[0];
  }
  const unsigned below = Recurse(depth - 1, b, c, a + b);
  return below + a * local[b % local.size()] + c;
}

double Now() {
  LARGE_INTEGER time{};
  QueryPerformanceCounter(&time);
  return static_cast<double>(time.QuadPart);
}

double NsPerTick() {
  LARGE_INTEGER frequency{};
  QueryPerformanceFrequency(&frequency);
  return 1e9 / static_cast<double>(frequency.QuadPart);
}

struct Times {
  std::vector<double> copy;
  std::vector<double> unwind_in_place;
  std::size_t frames = 0;
  std::size_t stack_bytes = 0;
};

void Sample(HANDLE thread, Address stack_high, std::span<std::byte> stack, Times& times) {
  CONTEXT context{};
  context.ContextFlags = CONTEXT_FULL;
  SuspendThread(thread);
  if (GetThreadContext(thread, &context) == 0) std::abort();
  const double begin = Now();
  const std::size_t bytes = std::min<std::size_t>(stack_high - context.Rsp, stack.size());
  std::memcpy(stack.data(), reinterpret_cast<const void*>(context.Rsp), bytes);
  const double copied = Now();
  std::array<Address, kMaxFrames> addresses;
  const std::size_t frames = WalkByWindows(context, addresses);
  const double unwound = Now();
  ResumeThread(thread);
  times.copy.push_back(copied - begin);
  times.unwind_in_place.push_back(unwound - copied);
  times.frames = frames;
  times.stack_bytes = bytes;
}

int Main() {
  constexpr int kRounds = 2000;
  std::atomic<Address> high{0};
  HANDLE thread = nullptr;
  std::thread worker([&] {
    DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &thread, 0, FALSE,
                    DUPLICATE_SAME_ACCESS);
    high = WindowsPlatform::CurrentThread().stack.high;
    static_cast<void>(Recurse(kDepth, 1, 2, 3));
  });
  while (high == 0) std::this_thread::yield();
  std::vector<std::byte> stack(kMaxStackBytes);
  Times times;
  for (int i = 0; i < kRounds; ++i) Sample(thread, high, stack, times);
  is_ending = true;
  worker.join();
  const double ns = NsPerTick();
  const std::string name =
      std::to_string(times.frames) + " frames, " + std::to_string(times.stack_bytes) + " bytes";
  Report(name, "strobe_copy", "time", Median(times.copy) * ns, "ns");
  Report(name, "RtlVirtualUnwind_in_place", "time", Median(times.unwind_in_place) * ns, "ns");
  return 0;
}

}  // namespace
}  // namespace strobe::testing

int main() { return strobe::testing::Main(); }
