// Signals that a thread sends to itself, standing on generated functions.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "../report.h"
#include "path.h"

namespace strobe::testing {

inline constexpr int kEmptySignal = SIGUSR2;

inline siginfo_t MakeSignal(int signal, int code, std::uint64_t payload) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = code;
  info.si_value.sival_ptr = reinterpret_cast<void*>(payload);
  return info;
}

inline void InstallEmptyHandler(int signal) {
  struct sigaction action {};
  action.sa_sigaction = [](int, siginfo_t*, void*) {};
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

// A path that ends with signals: `repeats` of the empty handler's and as many of the other's, which
// is the first in every other turn.
struct Delivery : Path {
  Delivery(const siginfo_t& empty, const siginfo_t& full) : signals{empty, full} {}

  std::array<siginfo_t, 2> signals;
  int repeats = 1;
  void (*before_each)() =
      nullptr;  // if any, is called before the signals of either kind, outside of what is timed
  std::size_t turn = 0;
  std::array<std::vector<double>, 2> times_ns;  // a signal; of both handlers
  const pid_t process = getpid();
  const pid_t thread = static_cast<pid_t>(syscall(SYS_gettid));
};

// The last step of a Delivery's path. Sends from its own frame, so that nothing but the system call
// stands below it.
inline std::uint64_t Deliver(Path& path, std::size_t depth) {
  auto& delivery = static_cast<Delivery&>(path);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t which = (i + delivery.turn) % 2;
    siginfo_t& info = delivery.signals[which];
    if (delivery.before_each != nullptr) delivery.before_each();
    const std::int64_t begin_ns = MonotonicNs();
    for (int j = 0; j < delivery.repeats; ++j)
      syscall(SYS_rt_tgsigqueueinfo, delivery.process, delivery.thread, info.si_signo, &info);
    delivery.times_ns[which].push_back(static_cast<double>(MonotonicNs() - begin_ns) /
                                       delivery.repeats);
  }
  ++delivery.turn;
  return depth;
}

// On which stacks.
enum class StackCase : std::uint8_t { kRepeated, kSharedRoots, kRandom };
inline constexpr std::size_t kStackCases = 3;
inline constexpr std::array<const char*, kStackCases> kStackCaseNames = {
    "repeated stack", "shared roots", "20k random stacks"};

// Delivers `turns` times, `functions` deep, and calls after_turn() after each. The same frames of
// its own lie on the stack each time.
__attribute__((noinline)) inline void DeliverOn(StackCase stacks, FunctionKind kind,
                                                std::size_t functions, std::size_t turns,
                                                Delivery& delivery,
                                                const std::function<void()>& after_turn) {
  constexpr std::size_t kManyStacks = 20'000;
  constexpr std::size_t kChangingFunctions =
      2;  // with the last step and the system call: four frames
  std::vector<Step> steps(functions + 1);
  delivery.steps = steps.data();
  const auto go = [&](std::size_t count, std::uint64_t seed) {
    ChooseSteps(kind, seed, {steps.data(), count});
    steps[count] = Deliver;
    volatile std::uint64_t sink = steps[0](delivery, 1);
    static_cast<void>(sink);
    after_turn();
  };
  Random random(1);
  switch (stacks) {
    case StackCase::kRepeated:
      for (std::size_t i = 0; i < turns; ++i) go(functions, 1);
      break;
    case StackCase::kRandom:
      for (std::size_t i = 0; i < turns; ++i) go(functions, random.Below(kManyStacks) + 1);
      break;
    case StackCase::kSharedRoots: {
      std::vector<Step> roots(functions - kChangingFunctions + 1);
      ChooseSteps(kind, 1, {roots.data(), roots.size() - 1});
      roots.back() = Leaf(kind);
      Path path{.steps = roots.data(), .at_leaf = [&](const NativeRegisters&) {
                  for (std::size_t i = 0; i < turns; ++i) go(kChangingFunctions, i + 1);
                }};
      volatile std::uint64_t sink = roots[0](path, 1);
      static_cast<void>(sink);
      break;
    }
  }
}

}  // namespace strobe::testing
