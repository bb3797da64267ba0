#include "perf_stacks.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "perf_fields.h"
#include "strobe/process/perf_registers.h"

namespace strobe::internal {
namespace {

// What a call chain says of the frames behind it; all such words are above any address.
constexpr std::uint64_t kFirstMark = static_cast<std::uint64_t>(-4095);
constexpr std::uint64_t kKernelMark = static_cast<std::uint64_t>(-128);
constexpr std::uint64_t kUserMark = static_cast<std::uint64_t>(-512);

// Of a record's `misc`.
constexpr std::uint16_t kModeBits = 7;
constexpr std::uint16_t kKernelMode = 1;
constexpr std::uint16_t kUserMode = 2;

}  // namespace

// What is sampled first is the program. It is mapped lowest.
void PerfStacks::FindProgram(std::uint32_t process) {
  if (has_program_) return;
  const std::shared_ptr<const ProcessCode> code = table_.Find(process);
  if (code == nullptr || code->modules().empty()) return;
  has_program_ = true;
  const ProcessModule& program = *code->modules().front();
  frames_.UseProgram(program);
  const std::string& path = program.module.path;
  builder_.profile().program = path.substr(path.find_last_of('/') + 1);
  builder_.profile().process_id = process;
}

std::span<const std::uint32_t> PerfStacks::Of(const PerfEvent& event, const PerfSample& sample,
                                              std::uint16_t misc) {
  const std::uint16_t mode = misc & kModeBits;
  stack_.clear();
  frames_.BeginStack();
  FindProgram(sample.process);
  std::uint64_t mark = mode == kUserMode ? kUserMark : kKernelMark;
  std::vector<Address>& user = addresses_;
  std::size_t user_count = 0;
  const std::size_t words = sample.callchain.size() / sizeof(std::uint64_t);
  bool is_first = true;  // of its part: each other frame is a return address
  for (std::size_t i = 0; i < words && stack_.size() < kMaxFramesLimit; ++i) {
    const std::uint64_t word = PerfWord(sample.callchain, i);
    if (word >= kFirstMark) {
      mark = word;
      is_first = true;
      continue;
    }
    const Address address = word - (std::exchange(is_first, false) ? 0 : 1);
    if (mark == kUserMark && user_count < user.size()) user[user_count++] = address;
    if (mark != kKernelMark) continue;
    const std::uint32_t frame = frames_.Kernel(address);
    // Without names they are all the same.
    if (stack_.empty() || stack_.back() != frame) stack_.push_back(frame);
  }
  if (stack_.empty() && mode == kKernelMode) stack_.push_back(frames_.Kernel(sample.ip));
  if (mode != kKernelMode && mode != kUserMode && words == 0)
    stack_.push_back(frames_.User(sample.ip, nullptr));  // of a guest
  std::vector<Address> chain(user.begin(), user.begin() + static_cast<std::ptrdiff_t>(user_count));
  const Unwinding unwinding = Unwind(event, sample);
  if (unwinding == Unwinding::kDone) return stack_;
  // What perf itself has found is better than the end of a stack.
  const bool is_cut = unwinding == Unwinding::kRefused && chain.empty();
  if (chain.empty() && mode == kUserMode) chain.push_back(sample.ip);
  AddUserFrames(event, sample, chain);
  if (is_cut) stack_.push_back(frames_.Pseudo(PseudoFrame::kNoUnwindInfo));
  return stack_;
}

PerfStacks::Unwinding PerfStacks::Unwind(const PerfEvent& event, const PerfSample& sample) {
  if (sample.registers_kind == PerfRegisters::kNone || sample.stack.empty())
    return Unwinding::kNothingThere;
  if (!architecture_) {
    ++stacks_of_other_cpus_;
    return Unwinding::kRefused;
  }
  const PerfRegisters registers(*architecture_, event.registers, sample.registers_kind,
                                sample.registers);
  if (absl::IsUnimplemented(registers.status())) {
    ++stacks_of_32_bit_;
    return Unwinding::kRefused;
  }
  if (!registers.status().ok()) return Unwinding::kNothingThere;
  const WalkResult walk = table_.Unwind(
      sample.process, {.registers = registers.get(), .stack = sample.stack}, addresses_);
  AddUserFrames(event, sample, std::span(addresses_).first(walk.count));
  switch (walk.end) {
    case StackEnd::kTruncated: stack_.push_back(frames_.Pseudo(PseudoFrame::kTruncated)); break;
    case StackEnd::kBroken: stack_.push_back(frames_.Pseudo(PseudoFrame::kBroken)); break;
    case StackEnd::kNoUnwindInfo:
      stack_.push_back(frames_.Pseudo(PseudoFrame::kNoUnwindInfo));
      break;
    case StackEnd::kComplete:
    case StackEnd::kCoroutine: break;
  }
  return Unwinding::kDone;
}

std::uint32_t PerfStacks::UserFrame(const Source& source, Address address,
                                    const ProcessModule* module) {
  // It may be in a file that only the process has, such as shared memory.
  const bool is_generated = module == nullptr || module->image_number == 0;
  if (!is_generated) return frames_.User(address, module);
  if (source.dump == JitDumps::kNone && find_generated_ != nullptr) {
    const std::string_view name = find_generated_(source.process, address);
    if (!name.empty()) return frames_.Generated(address, module, name);
  }
  return frames_.NamedLater({.process = source.process, .dump = source.dump, .address = address},
                            module, source.time);
}

void PerfStacks::AddUserFrames(const PerfEvent& event, const PerfSample& sample,
                               std::span<const Address> addresses) {
  if (addresses.empty()) return;
  const std::shared_ptr<const ProcessCode> code = table_.Find(sample.process);
  const Source source{.process = sample.process,
                      .time = event.has_monotonic_times ? sample.time : 0,
                      .dump = dumps_.Of(sample.process, code)};
  for (const Address address : addresses)
    stack_.push_back(UserFrame(source, address, code == nullptr ? nullptr : code->Find(address)));
}

bool PerfStacks::Finish() {
  const bool has_equal = frames_.NameLater([this](const PerfFrames::Unnamed& code) {
    std::optional<std::string_view> name;
    if (code.dump != JitDumps::kNone) name = dumps_.Find(code.dump, code.address, code.times);
    if (name || find_generated_ == nullptr) return name.value_or(std::string_view());
    return find_generated_(code.process, code.address);
  });
  frames_.Finish();
  return has_equal;
}

}  // namespace strobe::internal
