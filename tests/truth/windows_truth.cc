// windows_truth [--samples N] [--steps N]: compares walks by the tables made of .pdata, over a copy of the stack, with RtlVirtualUnwind on
// the same context, frame by frame: of a thread that is suspended N times at arbitrary instants, and of one that is stepped through N
// instructions. Exit status 1 on any mismatch, of which it prints where it is and the function's unwind codes.
//
// Stacks that RtlVirtualUnwind itself loses, because it comes to an address that is no code, are counted apart: libgcc's ___chkstk_ms
// pushes two registers and has no unwind codes, and Wine's entry to the system pushes the flags; the tables know the former. Wine's does
// not know an epilogue that ends in a jump to another function; such a one is carried out here, instruction by instruction.
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
#include "strobe/unwind/cfi_unwinder.h"
#include "windows_code.h"

namespace strobe::testing {
namespace {

constexpr std::size_t kMaxFrames = 512;
constexpr std::size_t kMaxStackBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxShown = 20;

// What a frame's registers are.
struct Place {
  Address pc = 0;
  Address sp = 0;
  Address fp = 0;
};
bool operator==(const Place& a, const Place& b) { return a.pc == b.pc && a.sp == b.sp && a.fp == b.fp; }

struct Places {
  std::size_t count = 0;
  std::array<Place, kMaxFrames> places;
};

struct Bounds {
  Address low = 0;
  Address high = 0;
};

Bounds CurrentBounds() {
  ULONG_PTR low = 0;
  ULONG_PTR high = 0;
  GetCurrentThreadStackLimits(&low, &high);
  return {low, high};
}

// All images' functions, so that nothing asks the loader while a thread is stopped that may hold its lock.
class FunctionTables {
 public:
  explicit FunctionTables(const ModuleMap& map) : map_(map) {}

  [[nodiscard]] RUNTIME_FUNCTION* Find(Address pc, Address& base) const {
    const auto index = map_.Find(pc);
    if (!index) return nullptr;
    const Module& module = map_.modules()[*index];
    base = module.load_bias;
    auto* const first = reinterpret_cast<RUNTIME_FUNCTION*>(module.pdata_address);
    auto* const last = first + module.pdata_bytes / sizeof(RUNTIME_FUNCTION);
    const auto offset = static_cast<DWORD>(pc - base);
    auto* const after = std::upper_bound(first, last, offset, [](DWORD at, const RUNTIME_FUNCTION& f) { return at < f.BeginAddress; });
    if (after == first || offset >= after[-1].EndAddress) return nullptr;
    return after - 1;
  }
  [[nodiscard]] bool Knows(Address pc) const { return map_.Find(pc).has_value(); }
  [[nodiscard]] const ModuleMap& map() const { return map_; }

 private:
  const ModuleMap& map_;
};

Address* RegisterOf(CONTEXT& context, unsigned number) { return reinterpret_cast<Address*>(&context.Rax) + number; }

// Carries out an epilogue of which nothing is left but pops, and that then jumps out of `function`. False where there is none.
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
  while (output.count < kMaxFrames) {
    output.places[output.count++] = {context.Rip, context.Rsp, context.Rbp};
    if (!tables.Knows(context.Rip) || context.Rsp < bounds.low || context.Rsp + 8 > bounds.high) return;
    Address base = 0;
    RUNTIME_FUNCTION* const function = tables.Find(context.Rip, base);
    if (function == nullptr) {
      std::memcpy(&context.Rip, reinterpret_cast<const void*>(context.Rsp), sizeof(context.Rip));
      context.Rsp += 8;
    } else if (output.count != 1 || !FinishTailCall(*function, base, context)) {
      void* handler_data = nullptr;
      ULONG64 establisher = 0;
      RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context.Rip, function, &context, &handler_data, &establisher, nullptr);
    }
    if (context.Rip == 0) return;
  }
}

// In the order of X86_64GeneralRegisters.
std::array<Address, kX86_64GeneralRegisters> GeneralRegisters(const CONTEXT& context) {
  return {context.Rax, context.Rdx, context.Rcx, context.Rbx, context.Rsi, context.Rdi, context.Rbp, context.Rsp,
          context.R8,  context.R9,  context.R10, context.R11, context.R12, context.R13, context.R14, context.R15};
}

void WalkByTables(const UnwindModules& modules, const CONTEXT& context, const CopiedStackMemory& memory, Places& output) {
  const auto words = GeneralRegisters(context);
  const X86_64GeneralRegisters general(words.data());
  const X86_64Registers registers{.pc = context.Rip, .sp = context.Rsp, .fp = context.Rbp, .general = &general};
  FrameState<X86_64Registers> state{.registers = registers, .innermost = &registers};
  const CfiUnwinder unwinder(&modules);
  output.count = 0;
  while (output.count < kMaxFrames) {
    output.places[output.count++] = {state.registers.pc, state.registers.sp, state.registers.fp};
    if (unwinder.Step(state, memory) != StepResult::kCaller) return;
  }
}

class Comparison {
 public:
  Comparison() : map_(WindowsPlatform::Modules()), tables_(map_), modules_(kNativeCfi, &WindowsPlatform::ReadMemory) {
    modules_.Update(map_);
    modules_.BuildAll();
    snapshot_ = modules_.Snapshot();
  }

  [[nodiscard]] const FunctionTables& tables() const { return tables_; }

  // By `context` and the stack from its stack pointer on; `windows` has been walked in place. May be called where nothing may be allocated.
  void Compare(const CONTEXT& context, std::span<const std::byte> stack, const Places& windows) {
    WalkByTables(*snapshot_, context, CopiedStackMemory(context.Rsp, stack), ours_);
    ++samples_;
    frames_ += windows.count;
    const Address pc = context.Rip;
    Address base = 0;
    const RUNTIME_FUNCTION* const function = tables_.Find(pc, base);
    if (function == nullptr) {
      ++leaves_;
    } else {
      const auto* const info = reinterpret_cast<const unsigned char*>(base + (function->UnwindData & ~1u));
      prologues_ += pc - base - function->BeginAddress < info[1] ? 1 : 0;
    }
    const auto* code = reinterpret_cast<const unsigned char*>(pc);
    if ((*code & 0xF0) == 0x40) ++code;
    constexpr unsigned char kReturn = 0xC3;
    epilogues_ += *code == kReturn || (*code & 0xF8) == 0x58 ? 1 : 0;  // pop
    const std::size_t common = std::min(windows.count, ours_.count);
    std::size_t same = 0;
    while (same < common && windows.places[same] == ours_.places[same]) ++same;
    if (same == windows.count && same == ours_.count) return;
    if (same + 1 >= windows.count && !tables_.Knows(windows.places[windows.count - 1].pc)) {
      ++lost_;
      // What is above them is common code, so a stack that goes on for long is the right one.
      followed_ += ours_.count > windows.count && tables_.Knows(ours_.places[ours_.count - 1].pc) ? 1 : 0;
      return;
    }
    ++mismatches_;
    if (shown_.size() == shown_.capacity()) return;
    const Address at = windows.places[same == 0 ? 0 : same - 1].pc;
    if (std::any_of(shown_.begin(), shown_.end(), [&](const Shown& shown) { return shown.at == at; })) return;
    shown_.push_back({.at = at,
                      .frame = same,
                      .windows = same < windows.count ? windows.places[same] : Place(),
                      .ours = same < ours_.count ? ours_.places[same] : Place()});
  }

  // Returns the exit status.
  int Report(std::size_t wanted) const {
    std::printf(
        "%zu samples of %zu frames, %zu in prologues, %zu in epilogues, %zu in leaf functions; %zu mismatches; %zu lost by Windows, "
        "%zu of them not by us\n",
        samples_, frames_, prologues_, epilogues_, leaves_, mismatches_, lost_, followed_);
    std::printf("tables: %zu functions, %zu rows, %zu without a rule, %zu entries broken\n", modules_.statistics().fdes,
                modules_.statistics().rows, modules_.statistics().unknown_rows, modules_.statistics().broken_entries);
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
    Address base = 0;
    const RUNTIME_FUNCTION* const function = tables_.Find(shown.at, base);
    const auto index = map_.Find(shown.at);
    std::printf("%s+0x%llx leads to frame %zu: pc 0x%llx sp 0x%llx fp 0x%llx, not pc 0x%llx sp 0x%llx fp 0x%llx\n",
                index ? map_.modules()[*index].path.c_str() : "?", shown.at - base, shown.frame, shown.windows.pc, shown.windows.sp,
                shown.windows.fp, shown.ours.pc, shown.ours.sp, shown.ours.fp);
    if (function == nullptr) return;
    const auto* const info = reinterpret_cast<const unsigned char*>(base + (function->UnwindData & ~1u));
    std::printf("  function 0x%lx to 0x%lx, unwind codes:", function->BeginAddress, function->EndAddress);
    for (int i = 0; i < 4 + info[2] * 2; ++i) std::printf(" %02x", info[i]);
    const auto* const code = reinterpret_cast<const unsigned char*>(shown.at);
    std::printf("\n  code:");
    for (int i = 0; i < 24; ++i) std::printf(" %02x", code[i]);
    std::printf("\n");
  }

  const ModuleMap map_;
  const FunctionTables tables_;
  CfiModules modules_;
  std::shared_ptr<const UnwindModules> snapshot_;
  Places ours_;
  std::size_t samples_ = 0;
  std::size_t frames_ = 0;
  std::size_t prologues_ = 0;
  std::size_t epilogues_ = 0;
  std::size_t leaves_ = 0;
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
    if (GetThreadContext(worker.thread(), &context) != 0 && context.Rsp >= worker.bounds().low && context.Rsp < worker.bounds().high) {
      bytes = std::min<std::size_t>(worker.bounds().high - context.Rsp, stack->size());
      std::memcpy(stack->data(), reinterpret_cast<const void*>(context.Rsp), bytes);
      WalkByWindows(comparison.tables(), context, worker.bounds(), *windows);
    }
    ResumeThread(worker.thread());
    if (bytes != 0) comparison.Compare(context, std::span(*stack).first(bytes), *windows);
  }
}

// A thread that steps itself: each instruction raises an exception, which is handled on the same stack, below.
struct Stepping {
  Comparison* comparison = nullptr;
  std::size_t left = 0;
  Bounds bounds;
  Address raise_exception = reinterpret_cast<Address>(GetProcAddress(GetModuleHandleW(L"kernelbase.dll"), "RaiseException"));
  Places windows;
};
Stepping* stepping = nullptr;
constexpr DWORD kTrapFlag = 0x100;

LONG CALLBACK OnStep(EXCEPTION_POINTERS* exception) {
  if (exception->ExceptionRecord->ExceptionCode != static_cast<DWORD>(EXCEPTION_SINGLE_STEP)) return EXCEPTION_CONTINUE_SEARCH;
  const CONTEXT& context = *exception->ContextRecord;
  if (stepping->left > 0 && context.Rsp >= stepping->bounds.low && context.Rsp < stepping->bounds.high) {
    --stepping->left;
    WalkByWindows(stepping->comparison->tables(), context, stepping->bounds, stepping->windows);
    stepping->comparison->Compare(context, {reinterpret_cast<const std::byte*>(context.Rsp), stepping->bounds.high - context.Rsp},
                                  stepping->windows);
  }
  // To step through the dispatch of an exception would be to raise another one in the middle of it: that is left out until the next round.
  const bool is_raising = context.Rip == stepping->raise_exception;
  if (stepping->left > 0 && !is_raising) exception->ContextRecord->EFlags |= kTrapFlag;
  return EXCEPTION_CONTINUE_EXECUTION;
}

__attribute__((noinline)) void BeginStepping() { __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc"); }

void SampleSteps(Comparison& comparison, std::size_t steps) {
  const auto own = std::make_unique<Stepping>();
  stepping = own.get();
  own->comparison = &comparison;
  own->left = steps;
  void* const handler = AddVectoredExceptionHandler(1, &OnStep);
  const HANDLE thread = CreateThread(
      nullptr, 0,
      [](void*) -> DWORD {
        stepping->bounds = CurrentBounds();
        for (unsigned seed = 1; stepping->left > 0; ++seed) {
          BeginStepping();
          RunWindowsCode(seed);
        }
        return 0;
      },
      nullptr, 0, nullptr);
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  RemoveVectoredExceptionHandler(handler);
}

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
  SampleSteps(*comparison, steps);
  return comparison->Report(samples + steps);
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) { return strobe::testing::Main(argc, argv); }
