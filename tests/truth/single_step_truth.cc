// single_step_truth [--max-instructions N] [--chain | --frame-pointers] PROGRAM [ARGUMENT...]: runs
// a program one instruction at a time, keeps its true stack of calls, and compares the unwinder's
// whole stack with it before every instruction. Exit status 1 below 99.99 % of exact stacks, or if
// the program could not be followed; 77 where the system does not let trace. --chain takes frame
// pointers where there is no frame information; --frame-pointers takes nothing else, to see what
// that loses.
//
// Stacks that the program's own frame information does not describe are named and counted apart;
// the bound holds for the others:
// * Code without any: the C runtime's _init, _fini, __do_global_dtors_aux and frame_dummy; _start
//   of the loader.
// * The last instructions of longjmp and of a throw's search, whose information is of the frame
//   that they go to.
//
// True is: the exact pc of the innermost function, the return address less one of each caller, the
// exact pc where a signal interrupted. Only the program's first thread is followed, and only on its
// own stack and alternate signal stacks.
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "rule_text.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"
#include "strobe/unwind/frame_pointer_unwinder.h"
#include "traced_process.h"
#include "traced_stack.h"
#include "true_stack.h"

namespace strobe::testing {
namespace {

constexpr double kLeastExactPercent = 99.99;
constexpr double kMostUndescribedPercent = 0.5;

struct Options {
  std::uint64_t max_instructions = ~std::uint64_t{0};
  bool is_chained = false;
  bool is_by_frame_pointers = false;
  std::vector<std::string> command;
};

// One class of mismatches: those that leave the truth at the same instruction.
struct Mismatch {
  std::uint64_t count = 0;
  std::string text;
};

class SingleStepTruth {
 public:
  explicit SingleStepTruth(const Options& options)
      : options_(options),
        stack_(process_),
        modules_(Architecture::kX86_64, [this](Address address, std::span<std::uint8_t> bytes) {
          return process_.Read(address, bytes);
        }) {}

  int Run() {
    TracedProcess::Stop stop = process_.Start(options_.command);
    if (stop == TracedProcess::Stop::kNotPermitted) {
      std::cout << "this system does not permit ptrace\n";
      return 77;
    }
    while (stop != TracedProcess::Stop::kEnded && stop != TracedProcess::Stop::kNotPermitted &&
           instructions_ < options_.max_instructions) {
      if (stop == TracedProcess::Stop::kNewProgram) BeginProgram();
      Compare();
      stop = Advance();
      if (!is_followed_) break;
    }
    return Report();
  }

 private:
  void BeginProgram() {
    truth_.Clear();
    stack_.Reset(process_.StackEnd());
    stack_.RefreshAll(process_.registers().rsp);
    UpdateModules();
  }

  void UpdateModules() {
    is_map_stale_ = false;
    map_ = ModuleMap(process_.Modules());
    modules_.Update(map_);
    modules_.BuildAll();
    snapshot_ = modules_.Snapshot();
  }

  // One instruction, with the truth kept up.
  TracedProcess::Stop Advance() {
    const user_regs_struct before = process_.registers();
    const InstructionKind kind = process_.NextInstruction();
    TracedProcess::Stop stop = process_.Step();
    while (stop == TracedProcess::Stop::kSignal) {
      // A fault, or a signal that waited: its instruction is not executed, or was before.
      const user_regs_struct interrupted = process_.registers();
      stop = process_.Step();
      if (stop == TracedProcess::Stop::kEnded) return stop;
      if (EnterHandler(interrupted)) return stop;
    }
    if (stop != TracedProcess::Stop::kStepped) return stop;
    Follow(before, kind);
    return stop;
  }

  // Whether a signal's handler has been entered from `interrupted`.
  bool EnterHandler(const user_regs_struct& interrupted) {
    const Address sp = process_.registers().rsp;
    ucontext_t context{};
    const Address context_at = sp + sizeof(Address);
    process_.Read(context_at, {reinterpret_cast<std::uint8_t*>(&context), sizeof(context)});
    const auto& saved = context.uc_mcontext.gregs;
    if (process_.registers().rip == interrupted.rip ||
        static_cast<Address>(saved[REG_RIP]) != interrupted.rip ||
        static_cast<Address>(saved[REG_RSP]) != interrupted.rsp) {
      return false;
    }
    const auto low = reinterpret_cast<Address>(context.uc_stack.ss_sp);
    const Address high = low + context.uc_stack.ss_size;
    truth_.Interrupt(interrupted.rip, interrupted.rsp, process_.ReadWord(sp), sp, low, high);
    if (sp >= low && sp < high) stack_.AddStack(high);
    stack_.RefreshAll(sp);
    ++signals_;
    return true;
  }

  void Follow(const user_regs_struct& before, InstructionKind kind) {
    const user_regs_struct& now = process_.registers();
    if (kind == InstructionKind::kSystemCall) {
      FollowSystemCall(before);
      return;
    }
    // What else an instruction wrote to the stack is read when the walk and the truth differ.
    if (now.rsp < before.rsp) stack_.RefreshAround(now.rsp);
    truth_.Follow(kind, {before.rip, before.rsp, before.rbp}, {now.rip, now.rsp, now.rbp},
                  [this](Address address) {
                    Address word = 0;
                    return stack_.ReadWord(address, word) ? word : 0;
                  });
    deepest_ = std::max(deepest_, truth_.frames().size() + 1);
  }

  void FollowSystemCall(const user_regs_struct& before) {
    constexpr std::uint64_t kMmap = 9, kMprotect = 10, kMunmap = 11, kSigreturn = 15, kMremap = 25;
    constexpr std::uint64_t kProtExec = 4;
    const std::uint64_t number = before.rax;
    if (number == kSigreturn) {
      if (!truth_.ReturnFromSignal())
        Lose("a signal's handler returned to where none had come from");
      stack_.RefreshAll(process_.registers().rsp);
    } else if (number == kMmap || number == kMprotect) {
      if ((before.rdx & kProtExec) == 0) return;
      process_.ForgetCode();
      is_map_stale_ = true;
    } else if (number == kMunmap || number == kMremap) {
      process_.ForgetCode();
      is_map_stale_ = true;
      const auto& modules = map_.modules();
      if (std::any_of(modules.begin(), modules.end(), [&](const Module& module) {
            return before.rdi < module.limit && before.rdi + before.rsi > module.start;
          })) {
        UpdateModules();
      }
    }
  }

  void Lose(const char* reason) {
    std::cout << "cannot follow the program: " << reason << "\n";
    is_followed_ = false;
  }

  WalkResult Unwind() {
    const user_regs_struct& now = process_.registers();
    const Address words[kX86_64GeneralRegisters] = {
        now.rax, now.rdx, now.rcx, now.rbx, now.rsi, now.rdi, now.rbp, now.rsp,
        now.r8,  now.r9,  now.r10, now.r11, now.r12, now.r13, now.r14, now.r15};
    const X86_64GeneralRegisters general(words);
    const X86_64Registers registers{
        .pc = now.rip, .sp = now.rsp, .fp = now.rbp, .general = &general};
    if (options_.is_by_frame_pointers)
      return FramePointerUnwinder().Unwind(registers, stack_, found_);
    if (options_.is_chained)
      return ChainUnwinder<CfiStep, FramePointerStep>(snapshot_.get())
          .Unwind(registers, stack_, found_);
    return ChainUnwinder<CfiStep>(snapshot_.get()).Unwind(registers, stack_, found_);
  }

  // The first frame at which the walk and the truth differ; the number of frames if they are equal.
  [[nodiscard]] std::size_t FirstDifference(const WalkResult& walk) const {
    const auto& frames = truth_.frames();
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const TrueStack::Frame& frame = frames[frames.size() - 1 - i];
      if (i + 1 >= walk.count ||
          found_[i + 1] != (frame.is_interrupted ? frame.address : frame.address - 1))
        return i + 1;
    }
    return frames.size() + 1;
  }

  [[nodiscard]] bool IsExact(const WalkResult& walk) const {
    const std::size_t depth = truth_.frames().size() + 1;
    if (FirstDifference(walk) != depth || walk.count != std::min(depth, found_.size()))
      return false;
    // The loader's first instructions have no frame information, and no caller either.
    return walk.end == StackEnd::kComplete || walk.end == StackEnd::kNoUnwindInfo ||
           walk.end == StackEnd::kTruncated;
  }

  void Compare() {
    ++instructions_;
    const Address pc = process_.registers().rip;
    if (is_map_stale_ && snapshot_->Find(pc) == nullptr) UpdateModules();
    WalkResult walk = Unwind();
    if (!IsExact(walk)) {
      // Perhaps an instruction wrote far from the stack pointer.
      stack_.RefreshAll(process_.registers().rsp);
      walk = Unwind();
    }
    if (IsExact(walk)) {
      ++exact_;
    } else {
      Add(walk);
    }
  }

  [[nodiscard]] std::string Place(Address address) const {
    std::ostringstream text;
    const std::optional<std::uint32_t> module = map_.Find(address);
    if (!module) {
      text << std::hex << address;
      return text.str();
    }
    const Module& found = map_.modules()[*module];
    text << found.path.substr(found.path.rfind('/') + 1) << "+" << std::hex
         << address - found.load_bias;
    return text.str();
  }

  [[nodiscard]] std::string RuleAt(Address address) const {
    const UnwindModules::Entry* entry = snapshot_->Find(address);
    if (entry == nullptr) return "no table";
    const RowText row = RuleTexts(Architecture::kX86_64)
                            .Of(*entry->table, static_cast<std::uint32_t>(address - entry->start));
    if (row.cfa == "unknown") return "no frame information";
    return "CFA " + row.cfa + ", fp " + row.fp + ", ra " + row.ra;
  }

  // Why the frame information of the code there cannot give the truth; empty where it should.
  [[nodiscard]] std::string UndescribedReason(Address address) const {
    const UnwindModules::Entry* entry = snapshot_->Find(address);
    if (entry == nullptr) return "no frame information";
    const RowText row = RuleTexts(Architecture::kX86_64)
                            .Of(*entry->table, static_cast<std::uint32_t>(address - entry->start));
    if (row.cfa == "unknown") return "no frame information";
    // __longjmp counts from rdi and __builtin_eh_return from rcx; then the stack pointer has left
    // frames that are not returned from yet.
    const bool has_left =
        !truth_.frames().empty() && truth_.frames().back().slot < process_.registers().rsp;
    return address == process_.registers().rip &&
                   (has_left || row.cfa.starts_with("rdi") || row.cfa.starts_with("rcx"))
               ? "information of where longjmp or a throw is going"
               : "";
  }

  void Add(const WalkResult& walk) {
    const std::size_t differs = std::min(FirstDifference(walk), walk.count);
    const Address left_at = found_[differs - 1];
    const std::string reason = UndescribedReason(left_at);
    if (!reason.empty()) {
      ++undescribed_[reason];
      ++undescribed_stacks_;
      return;
    }
    Mismatch& mismatch = mismatches_[Place(left_at)];
    if (++mismatch.count > 1) return;
    std::ostringstream text;
    text << "at instruction " << instructions_ << ", pc " << Place(found_[0]) << ", frame "
         << differs << ": ";
    const auto& frames = truth_.frames();
    text << (differs <= frames.size() ? "truth " + Place(frames[frames.size() - differs].address)
                                      : "the truth ends");
    text << ", found "
         << (differs < walk.count ? Place(found_[differs] + 1)
                                  : "the end, " + std::to_string(static_cast<int>(walk.end)));
    text << "; rule of frame " << differs - 1 << ": " << RuleAt(left_at);
    mismatch.text = text.str();
  }

  int Report() {
    const auto percent = [](std::uint64_t part, std::uint64_t whole) {
      return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
    };
    const double described = percent(exact_, instructions_ - undescribed_stacks_);
    std::printf(
        "%llu instructions, %llu exact stacks (%.4f %%; %.4f %% of those that frame information "
        "describes)\n",
        static_cast<unsigned long long>(instructions_), static_cast<unsigned long long>(exact_),
        percent(exact_, instructions_), described);
    std::printf("  deepest %zu frames, %llu signals, %zu modules, exit status %d\n", deepest_,
                static_cast<unsigned long long>(signals_), map_.modules().size(),
                process_.end_status());
    for (const auto& [reason, count] : undescribed_)
      std::printf("  %llu x %s\n", static_cast<unsigned long long>(count), reason.c_str());
    std::vector<std::pair<std::string, Mismatch>> classes(mismatches_.begin(), mismatches_.end());
    std::sort(classes.begin(), classes.end(),
              [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
    constexpr std::size_t kMaxShown = 20;
    for (std::size_t i = 0; i < std::min(classes.size(), kMaxShown); ++i) {
      std::printf("  %llu x %s: %s\n", static_cast<unsigned long long>(classes[i].second.count),
                  classes[i].first.c_str(), classes[i].second.text.c_str());
    }
    if (classes.size() > kMaxShown)
      std::printf("  and %zu other places\n", classes.size() - kMaxShown);
    return is_followed_ && described >= kLeastExactPercent &&
                   percent(undescribed_stacks_, instructions_) <= kMostUndescribedPercent
               ? 0
               : 1;
  }

  const Options options_;
  TracedProcess process_;
  TracedStack stack_;
  TrueStack truth_;
  internal::CfiModules modules_;
  ModuleMap map_;
  std::shared_ptr<const UnwindModules> snapshot_;
  std::vector<Address> found_ = std::vector<Address>(kMaxFramesLimit);
  std::map<std::string, Mismatch> mismatches_;
  std::map<std::string, std::uint64_t> undescribed_;  // by reason
  std::uint64_t undescribed_stacks_ = 0;
  std::uint64_t instructions_ = 0;
  std::uint64_t exact_ = 0;
  std::uint64_t signals_ = 0;
  std::size_t deepest_ = 0;
  bool is_map_stale_ = false;
  bool is_followed_ = true;
};

int Main(const std::vector<std::string>& arguments) {
  Options options;
  std::size_t next = 0;
  for (; next < arguments.size() && arguments[next].starts_with("--"); ++next) {
    if (arguments[next] == "--max-instructions" && next + 1 < arguments.size()) {
      options.max_instructions = std::strtoull(arguments[++next].c_str(), nullptr, 10);
    } else if (arguments[next] == "--chain") {
      options.is_chained = true;
    } else if (arguments[next] == "--frame-pointers") {
      options.is_by_frame_pointers = true;
    } else {
      break;
    }
  }
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  if (options.command.empty() || options.command[0].starts_with("--") ||
      options.max_instructions == 0) {
    std::cerr << "usage: single_step_truth [--max-instructions N] [--chain | --frame-pointers] "
                 "PROGRAM [ARGUMENT...]\n";
    return 2;
  }
  return SingleStepTruth(options).Run();
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) { return strobe::testing::Main({argv + 1, argv + argc}); }
