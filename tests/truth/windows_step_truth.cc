// windows_step_truth [--steps N] [--every N] [--frame-pointers]: runs code one instruction at a
// time, keeps its true stack of calls from what each instruction does, and compares the walk by
// tables made of .pdata with it before every Nth instruction: the program counter, the stack
// pointer and the frame pointer of every frame, from the stepped function down to where the
// stepping began; what called that must not change. The walk that goes by its last one, as the
// profiler's does, must find the same. Exit status 1 on any mismatch. --frame-pointers takes
// nothing but frame pointers, which loses much: then exit status 1 where no mismatch is found.
//
// Counted apart are stacks in a function that moves the stack pointer and has no unwind codes, so
// that cannot be known: of Wine 8, the first instructions of RtlCaptureContext. Steps into the
// system are stepped over; what was called before that is still there.
//
// Nothing that the true stack is made of is the unwinder's, or the system's: it knows no unwind
// codes.
#include <windows.h>
// After it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "strobe/core/module_map.h"
#include "strobe/platform/windows/windows_platform.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"
#include "strobe/unwind/frame_pointer_step.h"
#include "strobe/unwind/walk_memo.h"
#include "true_stack.h"
#include "windows_code.h"
#include "windows_stepping.h"
#include "windows_walk.h"

namespace strobe::testing {
namespace {

struct Options {
  std::size_t steps = 300000;  // all of the code once
  std::size_t every = 1;
  bool is_by_frame_pointers = false;
};

enum class Difference {
  kProgramCounter,
  kStackPointer,
  kFramePointer,
  kTooShort,
  kTooLong,
  kMemo,
  kUndescribed
};
constexpr std::array<const char*, 7> kDifferenceNames = {
    "another caller", "another stack pointer",          "another frame pointer", "ends early",
    "goes on",        "another stack by the last walk", "not described"};

// One class of mismatches: those that leave the truth at the same instruction in the same way.
struct Mismatch {
  Difference difference = Difference::kProgramCounter;
  Address at = 0;
  std::size_t count = 0;
  std::size_t frame = 0;
  Place truth;
  Place found;
  StepResult end = StepResult::kCaller;  // of the walk
  Address pc = 0;                        // of the innermost frame, the first time
};

class StepTruth : public StepObserver {
 public:
  explicit StepTruth(const Options& options)
      : options_(options),
        map_(WindowsPlatform::Modules()),
        tables_(map_),
        modules_(kNativeArchitecture, &WindowsPlatform::ReadMemory) {
    modules_.Update(map_);
    modules_.BuildAll();
    snapshot_ = modules_.Snapshot();
    truth_.Reserve(kMaxPlaces);
    mismatches_.reserve(kMaxClasses);
    seen_.resize(map_.modules().size());
    for (std::size_t i = 0; i < seen_.size(); ++i)
      seen_[i].resize(map_.modules()[i].pdata_bytes / sizeof(RUNTIME_FUNCTION));
  }

  bool BeforeInstruction(const CONTEXT& context, bool is_after_gap) override {
    const TrueStack::Registers now{context.Rip, context.Rsp, context.Rbp};
    if (is_after_gap) {
      ++gaps_;
      truth_.Transfer(now.sp);
    } else {
      Follow(now);
    }
    before_ = now;
    kind_ = KindOfInstruction(
        now.pc, [](Address at) { return *reinterpret_cast<const std::uint8_t*>(at); });
    // The first, for what called the first function.
    if (++steps_ % options_.every == 0 || steps_ == 1) Compare(context);
    return steps_ < options_.steps;
  }

  // Returns the exit status.
  int Report() const {
    std::size_t functions = 0;
    std::size_t images = 0;
    for (const std::vector<bool>& seen : seen_) {
      const auto count = static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true));
      functions += count;
      images += count == 0 ? 0 : 1;
    }
    std::printf(
        "%zu steps, %zu compared stacks, %zu frames, %zu mismatches, %zu not described; %zu in "
        "prologues, %zu in epilogues, "
        "%zu in leaf functions; deepest %zu, %zu functions of %zu images; %zu calls, %zu jumps to "
        "other functions, "
        "%zu calls of the system stepped over, %zu returns elsewhere, %zu times frames left "
        "otherwise, %zu beginnings\n",
        steps_, stacks_, frames_, mismatched_, undescribed_, code_.prologues, code_.epilogues,
        code_.leaves, deepest_, functions, images, calls_, tail_jumps_, system_calls_, odd_returns_,
        leaps_, gaps_);
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const auto count = std::count(seen_[i].begin(), seen_[i].end(), true);
      if (count != 0)
        std::printf("  %lld functions of %s\n", static_cast<long long>(count),
                    map_.modules()[i].path.c_str());
    }
    for (const Mismatch& mismatch : mismatches_) Print(mismatch);
    const bool is_enough = steps_ >= options_.steps && stacks_ >= options_.steps / options_.every;
    const bool is_right = mismatched_ == 0 && undescribed_ * 200 <= stacks_;
    const bool is_as_expected = options_.is_by_frame_pointers ? mismatched_ > 0 : is_right;
    return is_enough && is_as_expected ? 0 : 1;
  }

 private:
  static constexpr std::size_t kMaxClasses = 40;

  // The truth, and what happened.
  void Follow(const TrueStack::Registers& now) {
    const std::size_t depth = truth_.frames().size();
    const Address expected = depth == 0 ? 0 : truth_.frames().back().address;
    truth_.Follow(kind_, before_, now,
                  [](Address at) { return *reinterpret_cast<const Address*>(at); });
    const std::size_t depth_now = truth_.frames().size();
    deepest_ = std::max(deepest_, depth_now);
    const bool is_return = depth_now + 1 == depth && now.pc == expected;
    if (kind_ == InstructionKind::kCall && depth_now == depth + 1) {
      ++calls_;
    } else if (kind_ == InstructionKind::kCall && (is_return || depth_now == depth)) {
      ++system_calls_;  // the instruction after it, which returns, may have been executed, too
    } else if (kind_ == InstructionKind::kReturn) {
      odd_returns_ += is_return ? 0 : 1;
    } else if (depth_now != depth) {
      ++leaps_;
    } else {
      const RUNTIME_FUNCTION* const from = tables_.Find(before_.pc).entry;
      tail_jumps_ += from != nullptr && from != tables_.Find(now.pc).entry ? 1 : 0;
    }
  }

  // What the walk must find; `i` counts from the innermost frame's caller.
  [[nodiscard]] Place Truth(std::size_t i) const {
    const auto& frames = truth_.frames();
    if (i >= frames.size()) return root_.places[i - frames.size()];
    const TrueStack::Frame& frame = frames[frames.size() - 1 - i];
    return {frame.address, frame.slot + sizeof(Address), frame.fp};
  }

  void Compare(const CONTEXT& context) {
    const Bounds bounds = CurrentBounds();
    if (!bounds.Hold(context.Rsp)) return;
    const auto words = GeneralRegisters(context);
    const X86_64GeneralRegisters general(words.data());
    const X86_64Registers registers{
        .pc = context.Rip, .sp = context.Rsp, .fp = context.Rbp, .general = &general};
    const CopiedStackMemory memory(
        context.Rsp, {reinterpret_cast<const std::byte*>(context.Rsp), bounds.high - context.Rsp});
    const ChainUnwinder<CfiStep> unwinder(snapshot_.get());
    if (options_.is_by_frame_pointers) {
      end_ = WalkBy(FramePointerStep(), registers, memory, found_);
    } else {
      end_ = WalkBy(unwinder, registers, memory, found_);
    }
    // It does not change, and is not the truth's, which begins later.
    if (stacks_ == 0) {
      root_.count = found_.count - 1;
      std::copy_n(found_.places.begin() + 1, root_.count, root_.places.begin());
    }
    ++stacks_;
    frames_ += found_.count;
    code_.Add(tables_, context.Rip);
    MarkSeen(context.Rip);
    CompareFrames();
    if (!options_.is_by_frame_pointers)
      CompareMemo(unwinder.Unwind(registers, memory, memo_, addresses_));
  }

  void CompareFrames() {
    const std::size_t expected = 1 + truth_.frames().size() + root_.count;
    for (std::size_t i = 1; i < expected && i < found_.count; ++i) {
      const Place truth = Truth(i - 1);
      const Place& found = found_.places[i];
      if (truth == found) continue;
      Add(truth.pc != found.pc   ? Difference::kProgramCounter
          : truth.sp != found.sp ? Difference::kStackPointer
                                 : Difference::kFramePointer,
          i, truth, found);
      return;
    }
    if (found_.count < expected)
      Add(Difference::kTooShort, found_.count, Truth(found_.count - 1), Place());
    if (found_.count > expected)
      Add(Difference::kTooLong, expected, Place(), found_.places[expected]);
  }

  // `walk` has found new frames, before those that it shares with the last one.
  void CompareMemo(const WalkResult& walk) {
    std::memmove(&by_memo_[walk.count], &by_memo_[memo_count_ - walk.shared],
                 walk.shared * sizeof(Address));
    std::copy_n(addresses_.begin(), walk.count, by_memo_.begin());
    memo_count_ = walk.count + walk.shared;
    for (std::size_t i = 0; i < std::max(memo_count_, found_.count); ++i) {
      const Address plain = i < found_.count ? found_.places[i].pc - (i == 0 ? 0 : 1) : 0;
      const Address by_memo = i < memo_count_ ? by_memo_[i] : 0;
      if (plain == by_memo) continue;
      Add(Difference::kMemo, i, {.pc = plain}, {.pc = by_memo});
      return;
    }
  }

  // Whether the function says that it leaves the stack pointer alone, and does not.
  [[nodiscard]] bool DeniesItsFrame() const {
    const FunctionTables::Function function = tables_.Find(before_.pc);
    if (function.entry == nullptr || truth_.frames().empty()) return false;
    const auto* const info =
        reinterpret_cast<const unsigned char*>(function.base + function.entry->UnwindData);
    const bool has_codes = info[2] != 0 || (info[0] >> 3 & UNW_FLAG_CHAININFO) != 0;
    return !has_codes && truth_.frames().back().slot != before_.sp;
  }

  void Add(Difference difference, std::size_t frame, const Place& truth, const Place& found) {
    Address at = found_.places[frame == 0 ? 0 : frame - 1].pc;
    if (frame == 1 && difference != Difference::kMemo && DeniesItsFrame()) {
      difference = Difference::kUndescribed;
      const FunctionTables::Function function = tables_.Find(at);
      at = function.base + function.entry->BeginAddress;
    }
    ++(difference == Difference::kUndescribed ? undescribed_ : mismatched_);
    for (Mismatch& mismatch : mismatches_) {
      if (mismatch.difference != difference || mismatch.at != at) continue;
      ++mismatch.count;
      return;
    }
    if (mismatches_.size() == kMaxClasses) return;
    mismatches_.push_back({difference, at, 1, frame, truth, found, end_, found_.places[0].pc});
  }

  void MarkSeen(Address pc) {
    const auto index = map_.Find(pc);
    const RUNTIME_FUNCTION* const entry = tables_.Find(pc).entry;
    if (!index || entry == nullptr) return;
    seen_[*index][static_cast<std::size_t>(
        entry - reinterpret_cast<RUNTIME_FUNCTION*>(map_.modules()[*index].pdata_address))] = true;
  }

  [[nodiscard]] std::string Text(Address address) const {
    std::array<char, 32> number{};
    const auto index = map_.Find(address);
    std::snprintf(
        number.data(), number.size(), "0x%llx",
        static_cast<unsigned long long>(address - (index ? map_.modules()[*index].load_bias : 0)));
    if (!index) return number.data();
    const std::string& path = map_.modules()[*index].path;
    return path.substr(path.find_last_of("/\\") + 1) + "+" + number.data();
  }

  void Print(const Mismatch& mismatch) const {
    std::printf(
        "  %zu x %s after %s, frame %zu at %s: truth %s sp 0x%llx fp 0x%llx, found %s sp 0x%llx fp "
        "0x%llx, end %d\n",
        mismatch.count, kDifferenceNames[static_cast<std::size_t>(mismatch.difference)],
        Text(mismatch.at).c_str(), mismatch.frame, Text(mismatch.pc).c_str(),
        Text(mismatch.truth.pc).c_str(), static_cast<unsigned long long>(mismatch.truth.sp),
        static_cast<unsigned long long>(mismatch.truth.fp), Text(mismatch.found.pc).c_str(),
        static_cast<unsigned long long>(mismatch.found.sp),
        static_cast<unsigned long long>(mismatch.found.fp), static_cast<int>(mismatch.end));
  }

  const Options options_;
  const ModuleMap map_;
  const FunctionTables tables_;
  strobe::internal::CfiModules modules_;
  std::shared_ptr<const UnwindModules> snapshot_;
  TrueStack truth_;
  Places root_;
  Places found_;
  StepResult end_ = StepResult::kCaller;
  strobe::internal::WalkMemo memo_{};
  std::array<Address, kMaxPlaces> addresses_{};
  std::array<Address, kMaxPlaces> by_memo_{};
  std::size_t memo_count_ = 0;
  TrueStack::Registers before_;
  InstructionKind kind_ = InstructionKind::kOther;
  std::vector<Mismatch> mismatches_;
  std::vector<std::vector<bool>> seen_;  // functions, by image
  CodeCounts code_;
  std::size_t steps_ = 0;
  std::size_t stacks_ = 0;
  std::size_t frames_ = 0;
  std::size_t mismatched_ = 0;
  std::size_t undescribed_ = 0;
  std::size_t deepest_ = 0;
  std::size_t calls_ = 0;
  std::size_t tail_jumps_ = 0;
  std::size_t system_calls_ = 0;
  std::size_t odd_returns_ = 0;
  std::size_t leaps_ = 0;
  std::size_t gaps_ = 0;
};

void RunCode(unsigned seed) {
  RunWindowsCode(seed);
  RunSystemCode(seed);
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--steps" && i + 1 < argc)
      options.steps = std::strtoul(argv[++i], nullptr, 10);
    else if (option == "--every" && i + 1 < argc)
      options.every = std::strtoul(argv[++i], nullptr, 10);
    else if (option == "--frame-pointers")
      options.is_by_frame_pointers = true;
    else
      options.every = 0;
  }
  if (options.steps == 0 || options.every == 0) {
    std::fprintf(stderr, "usage: windows_step_truth [--steps N] [--every N] [--frame-pointers]\n");
    return 2;
  }
  RunCode(0);  // so that all libraries are there
  const auto truth = std::make_unique<StepTruth>(options);
  RunSteps(*truth, &RunCode);
  return truth->Report();
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) { return strobe::testing::Main(argc, argv); }
