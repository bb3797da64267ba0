// What a frame costs by tables and by RtlVirtualUnwind, on the same contexts of threads that stand
// still. The stacks are those of bench/unwind: about 36 frames of generated functions, each with a
// frame and saved registers of its own, and on top of them the system's frames of a thread that
// waits. The tables are asked as the profiler asks them, over a copy of the stack, once without a
// memo of the thread's last walk and once with it; RtlVirtualUnwind in place, with its function
// entry looked up, as a profiler does that has no tables of its own. All contenders write the same
// addresses, which are compared before. The cases:
//   repeated    the same stack again and again
//   new         20 threads' stacks, each walked once with warm caches; the inner half of each has
//               changed since the memo's last walk
//   20 stacks   those stacks in no order, again and again
//   cold        the same, each after the L2 cache was filled with other things
#include <windows.h>
// After it.
#include <intrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "../report.h"
#include "../unwind/path.h"
#include "../windows_walk.h"
#include "strobe/core/module_map.h"
#include "strobe/default_traits.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe::testing {

std::vector<Step>& Functions(FunctionKind /*kind*/) {
  static std::vector<Step> functions;
  return functions;
}

void ChooseSteps(FunctionKind kind, std::uint64_t seed, std::span<Step> steps) {
  Random random(seed);
  for (Step& step : steps) step = Functions(kind)[random.Below(Functions(kind).size())];
}

void EvictCache() {
  static std::vector<std::uint64_t> memory(std::size_t{1} << 19, 1);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < memory.size(); i += 8) sum += memory[i];
  asm volatile("" : : "r"(sum));
}

namespace {

constexpr std::size_t kThreads = 20;
constexpr std::size_t kSteps = 25;  // and the frames of the thread's start, and of the wait
constexpr std::size_t kKeptSteps = kSteps / 2;
constexpr std::size_t kMaxFrames = 256;
constexpr std::size_t kMaxStackBytes = std::size_t{1} << 17;
constexpr int kWarmWalks = 100;  // of one measurement
constexpr std::size_t kColdWalks = 3;

using Trace = std::array<Address, kMaxFrames>;

double Now() {
  LARGE_INTEGER time{};
  QueryPerformanceCounter(&time);
  return static_cast<double>(time.QuadPart);
}

// The end of every path: says that it is there, and waits to be sent elsewhere.
std::uint64_t WaitAtLeaf(Path& path, std::size_t depth) {
  path.at_leaf({});
  return depth;
}

// A thread that stands on one stack after the other.
class Subject {
 public:
  explicit Subject(std::uint64_t number) : number_(number), thread_([this] { Run(); }) {
    WaitForSingleObject(is_there_, INFINITE);
  }
  ~Subject() {
    is_ending_ = true;
    SetEvent(may_go_);
    thread_.join();
    CloseHandle(handle_);
    CloseHandle(is_there_);
    CloseHandle(may_go_);
  }

  // To its next stack, where it is stopped.
  void GoAndStop() {
    SetEvent(may_go_);
    WaitForSingleObject(is_there_, INFINITE);
    SuspendThread(handle_);
    context_ = {};
    context_.ContextFlags = CONTEXT_FULL;
    if (GetThreadContext(handle_, &context_) == 0) std::abort();
    bytes_ = std::min<std::size_t>(high_ - context_.Rsp, stack_->size());
    std::memcpy(stack_->data(), reinterpret_cast<const void*>(context_.Rsp), bytes_);
  }
  void Resume() { ResumeThread(handle_); }

  [[nodiscard]] const CONTEXT& context() const { return context_; }
  [[nodiscard]] std::span<const std::byte> stack() const {
    return std::span(*stack_).first(bytes_);
  }
  [[nodiscard]] internal::WalkMemo& memo() { return *memo_; }

 private:
  void Run() {
    DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &handle_, 0,
                    FALSE, DUPLICATE_SAME_ACCESS);
    high_ = NativePlatform::CurrentThread().stack.high;
    std::array<Step, kSteps + 1> steps{};
    ChooseSteps(FunctionKind::kPlain, number_, std::span(steps).first(kKeptSteps));
    steps[kSteps] = &WaitAtLeaf;
    Path path;
    path.steps = steps.data();
    path.at_leaf = [this](const NativeRegisters& /*registers*/) {
      SetEvent(is_there_);
      WaitForSingleObject(may_go_, INFINITE);
    };
    for (std::uint64_t turn = 1; !is_ending_; ++turn) {
      ChooseSteps(FunctionKind::kPlain, turn * 1000 + number_,
                  std::span(steps).subspan(kKeptSteps, kSteps - kKeptSteps));
      sink_ = steps[0](path, 1);
    }
  }

  const std::uint64_t number_;
  HANDLE is_there_ = CreateEventW(nullptr, FALSE, FALSE, nullptr);
  HANDLE may_go_ = CreateEventW(nullptr, FALSE, FALSE, nullptr);
  HANDLE handle_ = nullptr;
  std::atomic<bool> is_ending_{false};
  Address high_ = 0;
  volatile std::uint64_t sink_ = 0;
  CONTEXT context_{};
  std::size_t bytes_ = 0;
  std::unique_ptr<std::array<std::byte, kMaxStackBytes>> stack_ =
      std::make_unique<std::array<std::byte, kMaxStackBytes>>();
  std::unique_ptr<internal::WalkMemo> memo_ = std::make_unique<internal::WalkMemo>();
  std::thread thread_;
};

class Measurement {
 public:
  Measurement() : modules_(kNativeArchitecture, &NativePlatform::ReadMemory) {
    modules_.Update(ModuleMap(NativePlatform::Modules()));
    modules_.BuildAll();
    snapshot_ = modules_.Snapshot();
    for (std::size_t i = 0; i < kThreads; ++i)
      subjects_.push_back(std::make_unique<Subject>(i + 1));
  }

  void Round(std::size_t round) {
    for (const auto& subject : subjects_) subject->GoAndStop();
    bool is_equal = true;
    for (const auto& subject : subjects_) is_equal &= Compare(*subject);
    if (is_equal) {
      for (std::size_t turn = 0; turn < kContenders; ++turn)
        MeasureWarm(static_cast<Contender>((round + turn) % kContenders), round);
      for (std::size_t turn = 0; turn < kContenders; ++turn)
        MeasureCold(static_cast<Contender>((round + turn) % kContenders), round);
    }
    unequal_ += is_equal ? 0 : 1;
    ++rounds_;
    for (const auto& subject : subjects_) subject->Resume();
  }

  // False where walks differed in more than a few rounds: RtlVirtualUnwind itself errs at some
  // instructions, see tests/truth.
  bool ReportAll(double ns_per_tick) const {
    for (std::size_t i = 0; i < kCases; ++i) {
      for (std::size_t j = 0; j < kContenders; ++j)
        Report(kCaseNames[i], kContenderNames[j], "time a frame",
               Median(ticks_[i][j]) * ns_per_tick, "ns");
    }
    Report("all", "strobe", "frames a stack",
           static_cast<double>(compared_frames_) / static_cast<double>(compared_), "");
    Report("all", "strobe", "rounds left out", static_cast<double>(unequal_), "");
    return unequal_ * 20 <= rounds_;
  }

 private:
  enum Contender : std::size_t { kTables, kMemo, kWindows, kContenders };
  enum Case : std::size_t { kRepeated, kNew, kStacks, kCold, kCases };
  static constexpr std::array<const char*, kCases> kCaseNames = {"repeated", "new", "20 stacks",
                                                                 "cold"};
  static constexpr std::array<const char*, kContenders> kContenderNames = {
      "strobe_tables", "strobe_tables_with_memo", "RtlVirtualUnwind"};

  std::size_t Walk(Contender contender, Subject& subject) {
    if (contender == kWindows) return WalkByWindows(subject.context(), trace_);
    const CONTEXT& context = subject.context();
    const CopiedStackMemory memory(context.Rsp, subject.stack());
    const X86_64Registers registers{.pc = context.Rip, .sp = context.Rsp, .fp = context.Rbp};
    const DefaultTraits::Unwinder unwinder(snapshot_.get());
    const WalkResult walk = contender == kMemo
                                ? unwinder.Unwind(registers, memory, subject.memo(), trace_)
                                : unwinder.Unwind(registers, memory, trace_);
    return walk.count + walk.shared;
  }

  // Whether both come to the same frames, and we to the end of the stack.
  bool Compare(Subject& subject) {
    const std::size_t ours = Walk(kTables, subject);
    const Trace our_trace = trace_;
    const std::size_t frames = WalkByWindows(subject.context(), trace_);
    ++compared_;
    compared_frames_ += frames;
    if (ours != frames) return false;
    for (std::size_t i = 0; i < frames; ++i) {
      // Ours lie within the calls.
      if (our_trace[i] != (i == 0 ? trace_[i] : trace_[i] - 1)) return false;
    }
    return true;
  }

  // Adds what walk() costs a frame, of which it returns the number.
  template <class Walk>
  void Time(Case measured, Contender contender, const Walk& walk) {
    const std::uint64_t begin = __rdtsc();
    const std::size_t frames = walk();
    ticks_[measured][contender].push_back(static_cast<double>(__rdtsc() - begin) /
                                          static_cast<double>(frames));
  }

  void MeasureWarm(Contender contender, std::size_t round) {
    // First, for the memo still is that of the last round.
    Time(kNew, contender, [&] {
      std::size_t frames = 0;
      for (const auto& subject : subjects_) frames += Walk(contender, *subject);
      return frames;
    });
    Time(kStacks, contender, [&] {
      Random random(round + 1);
      std::size_t frames = 0;
      for (int i = 0; i < kWarmWalks; ++i)
        frames += Walk(contender, *subjects_[random.Below(kThreads)]);
      return frames;
    });
    Subject& subject = *subjects_[round % kThreads];
    Walk(contender, subject);
    Time(kRepeated, contender, [&] {
      std::size_t frames = 0;
      for (int i = 0; i < kWarmWalks; ++i) frames += Walk(contender, subject);
      return frames;
    });
  }

  void MeasureCold(Contender contender, std::size_t round) {
    for (std::size_t i = 1; i <= kColdWalks; ++i) {
      EvictCache();
      Time(kCold, contender, [&] { return Walk(contender, *subjects_[(round + i) % kThreads]); });
    }
  }

  internal::CfiModules modules_;
  std::shared_ptr<const UnwindModules> snapshot_;
  std::vector<std::unique_ptr<Subject>> subjects_;
  Trace trace_{};
  std::size_t rounds_ = 0;
  std::size_t unequal_ = 0;
  std::size_t compared_ = 0;
  std::size_t compared_frames_ = 0;
  std::array<std::array<std::vector<double>, kContenders>, kCases> ticks_;
};

int Main() {
  constexpr std::size_t kRounds = 200;
  Measurement measurement;
  const double begin = Now();
  const std::uint64_t begin_ticks = __rdtsc();
  for (std::size_t i = 0; i < kRounds; ++i) measurement.Round(i);
  const auto ticks = static_cast<double>(__rdtsc() - begin_ticks);
  LARGE_INTEGER frequency{};
  QueryPerformanceFrequency(&frequency);
  const double ns = (Now() - begin) * 1e9 / static_cast<double>(frequency.QuadPart);
  if (measurement.ReportAll(ns / ticks)) return 0;
  std::fprintf(stderr, "windows_unwind: the walks differ\n");
  return 1;
}

}  // namespace
}  // namespace strobe::testing

int main() { return strobe::testing::Main(); }
