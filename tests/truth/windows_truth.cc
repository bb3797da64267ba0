// windows_truth [--samples N] [--steps N]: compares walks by the tables made of .pdata, over a copy
// of the stack, with RtlVirtualUnwind on the same context, frame by frame: of a thread that is
// suspended N times at arbitrary instants, and of one that is stepped through N instructions. Exit
// status 1 on any mismatch, of which it prints where it is and the function's unwind codes.
//
// Stacks that RtlVirtualUnwind itself loses, because it comes to an address that is no code, are
// counted apart: libgcc's ___chkstk_ms pushes two registers and has no unwind codes, and Wine's
// entry to the system pushes the flags; the tables know the former. Wine's does not know an
// epilogue that ends in a jump to another function; such a one is carried out here, instruction by
// instruction.
#include <windows.h>
// After it.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strobe/core/module_map.h"
#include "strobe/platform/windows/windows_platform.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/cfi_step.h"
#include "windows_code.h"
#include "windows_stepping.h"
#include "windows_walk.h"

namespace strobe::testing {
namespace {

constexpr std::size_t kMaxStackBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxShown = 20;

Address* RegisterOf(CONTEXT& context, unsigned number) {
  return reinterpret_cast<Address*>(&context.Rax) + number;
}

// Carries out an epilogue of which nothing is left but pops, and that then jumps out of `function`.
// False where there is none.
bool FinishTailCall(const RUNTIME_FUNCTION& function, Address base, CONTEXT& context) {
  const auto* code = reinterpret_cast<const unsigned char*>(context.Rip);
  CONTEXT left = context;
  const auto pop = [&](Address* value) {
    std::memcpy(value, reinterpret_cast<const void*>(left.Rsp), sizeof(*value));
    left.Rsp += sizeof(*value);
  };
  constexpr unsigned kRexB = 1;
  while (true) {
    const unsigned rex = (*code & 0xF0) == 0x40 ? *code++ : 0;
    if ((*code & 0xF8) != 0x58) break;
    pop(RegisterOf(left, (*code++ & 7u) | (rex & kRexB) << 3));
  }
  const bool is_by_memory = code[0] == 0xFF && code[1] == 0x25;
  if (!is_by_memory) {
    std::int64_t distance = 0;
    if (code[0] == 0xEB) {
      distance = 2 + static_cast<signed char>(code[1]);
    } else if (code[0] == 0xE9) {
      std::int32_t bytes = 0;
      std::memcpy(&bytes, code + 1, sizeof(bytes));
      distance = 5 + std::int64_t{bytes};
    } else {
      return false;
    }
    const Address target = reinterpret_cast<Address>(code) + static_cast<Address>(distance) - base;
    if (target >= function.BeginAddress && target < function.EndAddress) return false;
  }
  pop(&left.Rip);
  context = left;
  return true;
}

// RtlVirtualUnwind's stack, read in place: of a thread that stands still. Allocates nothing.
void WalkByWindows(const FunctionTables& tables, CONTEXT context, Bounds bounds, Places& output) {
  output.count = 0;
  while (output.count < kMaxPlaces) {
    output.places[output.count++] = {context.Rip, context.Rsp, context.Rbp};
    if (!tables.Knows(context.Rip) || context.Rsp < bounds.low || context.Rsp + 8 > bounds.high)
      return;
    const auto [function, base] = tables.Find(context.Rip);
    if (function == nullptr) {
      std::memcpy(&context.Rip, reinterpret_cast<const void*>(context.Rsp), sizeof(context.Rip));
      context.Rsp += 8;
    } else if (output.count != 1 || !FinishTailCall(*function, base, context)) {
      void* handler_data = nullptr;
      ULONG64 establisher = 0;
      RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context.Rip, function, &context, &handler_data,
                       &establisher, nullptr);
    }
    if (context.Rip == 0) return;
  }
}

void WalkByTables(const UnwindModules& modules, const CONTEXT& context,
                  const CopiedStackMemory& memory, Places& output) {
  const auto words = GeneralRegisters(context);
  const X86_64GeneralRegisters general(words.data());
  WalkBy(CfiStep(&modules),
         {.pc = context.Rip, .sp = context.Rsp, .fp = context.Rbp, .general = &general}, memory,
         output);
}

class Comparison {
 public:
  Comparison()
      : map_(WindowsPlatform::Modules()),
        tables_(map_),
        modules_(kNativeArchitecture, &WindowsPlatform::ReadMemory) {
    modules_.Update(map_);
    modules_.BuildAll();
    snapshot_ = modules_.Snapshot();
  }

  [[nodiscard]] const FunctionTables& tables() const { return tables_; }

  // By `context` and the stack from its stack pointer on; `windows` has been walked in place. May
  // be called where nothing may be allocated.
  void Compare(const CONTEXT& context, std::span<const std::byte> stack, const Places& windows) {
    WalkByTables(*snapshot_, context, CopiedStackMemory(context.Rsp, stack), ours_);
    ++samples_;
    frames_ += windows.count;
    code_.Add(tables_, context.Rip);
    const std::size_t common = std::min(windows.count, ours_.count);
    std::size_t same = 0;
    while (same < common && windows.places[same] == ours_.places[same]) ++same;
    if (same == windows.count && same == ours_.count) return;
    if (same + 1 >= windows.count && !tables_.Knows(windows.places[windows.count - 1].pc)) {
      ++lost_;
      // What is above them is common code, so a stack that goes on for long is the right one.
      followed_ +=
          ours_.count > windows.count && tables_.Knows(ours_.places[ours_.count - 1].pc) ? 1 : 0;
      return;
    }
    ++mismatches_;
    if (shown_.size() == shown_.capacity()) return;
    const Address at = windows.places[same == 0 ? 0 : same - 1].pc;
    if (std::any_of(shown_.begin(), shown_.end(),
                    [&](const Shown& shown) { return shown.at == at; }))
      return;
    shown_.push_back({.at = at,
                      .frame = same,
                      .windows = same < windows.count ? windows.places[same] : Place(),
                      .ours = same < ours_.count ? ours_.places[same] : Place()});
  }

  // Returns the exit status.
  int Report(std::size_t wanted) const {
    std::printf(
        "%zu samples of %zu frames, %zu in prologues, %zu in epilogues, %zu in leaf functions; %zu "
        "mismatches; %zu lost by Windows, "
        "%zu of them not by us\n",
        samples_, frames_, code_.prologues, code_.epilogues, code_.leaves, mismatches_, lost_,
        followed_);
    std::printf("tables: %zu functions, %zu rows, %zu without a rule, %zu entries broken\n",
                modules_.statistics().fdes, modules_.statistics().rows,
                modules_.statistics().unknown_rows, modules_.statistics().broken_entries);
    for (const Shown& shown : shown_) Print(shown);
    return mismatches_ == 0 && samples_ >= wanted / 100 * 99 && lost_ * 50 < samples_ ? 0 : 1;
  }

 private:
  struct Shown {
    Address at = 0;
    std::size_t frame = 0;
    Place windows;
    Place ours;
  };

  void Print(const Shown& shown) const {
    const auto [function, base] = tables_.Find(shown.at);
    const auto index = map_.Find(shown.at);
    std::printf(
        "%s+0x%llx leads to frame %zu: pc 0x%llx sp 0x%llx fp 0x%llx, not pc 0x%llx sp 0x%llx fp "
        "0x%llx\n",
        index ? map_.modules()[*index].path.c_str() : "?", shown.at - base, shown.frame,
        shown.windows.pc, shown.windows.sp, shown.windows.fp, shown.ours.pc, shown.ours.sp,
        shown.ours.fp);
    if (function == nullptr) return;
    const auto* const info =
        reinterpret_cast<const unsigned char*>(base + (function->UnwindData & ~1u));
    std::printf("  function 0x%lx to 0x%lx, unwind codes:", function->BeginAddress,
                function->EndAddress);
    for (int i = 0; i < 4 + info[2] * 2; ++i) std::printf(" %02x", info[i]);
    const auto* const code = reinterpret_cast<const unsigned char*>(shown.at);
    std::printf("\n  code:");
    for (int i = 0; i < 24; ++i) std::printf(" %02x", code[i]);
    std::printf("\n");
  }

  const ModuleMap map_;
  const FunctionTables tables_;
  strobe::internal::CfiModules modules_;
  std::shared_ptr<const UnwindModules> snapshot_;
  Places ours_;
  std::size_t samples_ = 0;
  std::size_t frames_ = 0;
  CodeCounts code_;
  std::size_t lost_ = 0;
  std::size_t followed_ = 0;
  std::size_t mismatches_ = 0;
  std::vector<Shown> shown_ = [] {
    std::vector<Shown> shown;
    shown.reserve(kMaxShown);
    return shown;
  }();
};

// A thread that runs the code until it is told to end.
class Worker {
 public:
  Worker() : thread_(CreateThread(nullptr, 0, &Run, this, 0, nullptr)) {
    while (!is_running_.load()) Sleep(1);
  }
  ~Worker() {
    is_ending_.store(true);
    WaitForSingleObject(thread_, INFINITE);
    CloseHandle(thread_);
  }
  [[nodiscard]] HANDLE thread() const { return thread_; }
  [[nodiscard]] Bounds bounds() const { return bounds_; }

 private:
  static DWORD WINAPI Run(void* argument) {
    auto& worker = *static_cast<Worker*>(argument);
    worker.bounds_ = CurrentBounds();
    worker.is_running_.store(true);
    for (unsigned seed = 1; !worker.is_ending_.load(); ++seed) RunWindowsCode(seed);
    return 0;
  }
  std::atomic<bool> is_running_{false};
  std::atomic<bool> is_ending_{false};
  Bounds bounds_;
  HANDLE thread_;
};

void SampleSuspended(Comparison& comparison, std::size_t samples) {
  const Worker worker;
  const auto stack = std::make_unique<std::array<std::byte, kMaxStackBytes>>();
  const auto windows = std::make_unique<Places>();
  unsigned random = 1;
  for (std::size_t i = 0; i < samples; ++i) {
    random = random * 1664525 + 1013904223;
    for (unsigned spin = random >> 19; spin > 0; --spin) YieldProcessor();
    if (SuspendThread(worker.thread()) == static_cast<DWORD>(-1)) break;
    CONTEXT context{};
    context.ContextFlags = CONTEXT_FULL;
    std::size_t bytes = 0;
    if (GetThreadContext(worker.thread(), &context) != 0 && worker.bounds().Hold(context.Rsp)) {
      bytes = std::min<std::size_t>(worker.bounds().high - context.Rsp, stack->size());
      std::memcpy(stack->data(), reinterpret_cast<const void*>(context.Rsp), bytes);
      WalkByWindows(comparison.tables(), context, worker.bounds(), *windows);
    }
    ResumeThread(worker.thread());
    if (bytes != 0) comparison.Compare(context, std::span(*stack).first(bytes), *windows);
  }
}

class SteppedComparison : public StepObserver {
 public:
  SteppedComparison(Comparison& comparison, std::size_t steps)
      : comparison_(comparison), left_(steps) {}

  bool BeforeInstruction(const CONTEXT& context, bool /*is_after_gap*/) override {
    const Bounds bounds = CurrentBounds();
    if (bounds.Hold(context.Rsp)) {
      --left_;
      WalkByWindows(comparison_.tables(), context, bounds, windows_);
      comparison_.Compare(
          context, {reinterpret_cast<const std::byte*>(context.Rsp), bounds.high - context.Rsp},
          windows_);
    }
    return left_ > 0;
  }

 private:
  Comparison& comparison_;
  std::size_t left_;
  Places windows_;
};

int Main(int argc, char** argv) {
  std::size_t samples = 1000;
  std::size_t steps = 20000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--samples") samples = std::strtoul(argv[i + 1], nullptr, 10);
    if (option == "--steps") steps = std::strtoul(argv[i + 1], nullptr, 10);
  }
  RunWindowsCode(0);  // so that all libraries are there
  const auto comparison = std::make_unique<Comparison>();
  SampleSuspended(*comparison, samples);
  const auto stepped = std::make_unique<SteppedComparison>(*comparison, steps);
  if (steps > 0) RunSteps(*stepped, [](unsigned seed) { RunWindowsCode(seed); });
  return comparison->Report(samples + steps);
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) { return strobe::testing::Main(argc, argv); }
