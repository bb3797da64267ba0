#include "strobe/unwind/pdata_compiler.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "../cfi_state.h"
#include "arch/instruction_bytes.h"
#include "pdata_epilogue.h"
#include "unwind_codes.h"

namespace strobe {
namespace {

using internal::PdataFrame;
using internal::RuntimeFunction;
using internal::UnwindCodes;

constexpr std::size_t kEntriesPerRead = 1024;
constexpr std::uint32_t kMaxFunctionBytes = std::uint32_t{1} << 26;

class PdataRows {
 public:
  explicit PdataRows(const PdataSource& source) : source_(source) {}

  CompiledCfi Compile() {
    Append(source_.text, LeafRow());
    std::array<std::uint8_t, kEntriesPerRead * sizeof(RuntimeFunction)> chunk{};
    for (std::uint32_t done = FirstEntry();
         done + sizeof(RuntimeFunction) <= source_.pdata_bytes;) {
      const std::size_t wanted = std::min<std::size_t>(chunk.size(), source_.pdata_bytes - done);
      const std::size_t entries =
          source_.read(source_.pdata + done, std::span(chunk).first(wanted)) /
          sizeof(RuntimeFunction);
      for (std::size_t i = 0; i < entries; ++i) {
        RuntimeFunction function;
        std::memcpy(&function, chunk.data() + i * sizeof(function), sizeof(function));
        if (function.begin >= source_.text_limit) return Take();
        if (function.end > source_.text) Add(function);
      }
      if (entries == 0) {
        ++compiled_.statistics.broken_entries;
        break;
      }
      done += static_cast<std::uint32_t>(entries * sizeof(RuntimeFunction));
    }
    return Take();
  }

 private:
  static UnwindRow LeafRow() {
    return {.rule = UnwindRule::Frame(UnwindRule::Kind::kFromSp, 1, 1, 0),
            .special_register = {.where = SavedRegister::kUnchanged}};
  }

  // The position of the first entry that reaches into the text, from the first entry on. Entries
  // are sorted.
  [[nodiscard]] std::uint32_t FirstEntry() const {
    std::uint32_t low = 0;
    for (std::uint32_t high = source_.pdata_bytes / sizeof(RuntimeFunction); low < high;) {
      const std::uint32_t middle = low + (high - low) / 2;
      RuntimeFunction function;
      std::array<std::uint8_t, sizeof(function)> bytes{};
      if (source_.read(source_.pdata + EntryBytes(middle), bytes) < bytes.size()) return 0;
      std::memcpy(&function, bytes.data(), bytes.size());
      if (function.end <= source_.text) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return EntryBytes(low);
  }
  static constexpr std::uint32_t EntryBytes(std::uint32_t count) {
    return count * static_cast<std::uint32_t>(sizeof(RuntimeFunction));
  }

  // The row of a frame; lost if no rule can express the frame.
  UnwindRow RowOf(const PdataFrame& frame) {
    if (frame.interrupted) return {.rule = InterruptedRule(frame), .special_register = {}};
    const internal::CfiState state = internal::StateOf(frame);
    return {.rule = specials_.RuleOf(state, internal::CfiEntry(), registers_),
            .special_register = internal::SavedSpecialRegisterOf(state, registers_)};
  }

  // The CPU pushed the interrupted instruction's address and the stack pointer, which may be any.
  UnwindRule InterruptedRule(const PdataFrame& frame) {
    if (frame.base != X86_64Encoding::kRsp) return specials_.Lost();
    SpecialRule rule;
    rule.cfa = SpecialRule::Cfa::kMemory;
    rule.cfa_offset = static_cast<std::int32_t>(frame.offset + internal::kMachineFrameSp);
    rule.ra = {.where = SpecialRule::Where::kMemory,
               .base = SpecialRule::Base::kSp,
               .offset = static_cast<std::int32_t>(frame.offset)};
    if (frame.fp) {
      rule.fp = {.where = SpecialRule::Where::kMemory,
                 .base = SpecialRule::Base::kSp,
                 .offset = static_cast<std::int32_t>(*frame.fp)};
    }
    rule.is_signal_frame = true;
    return specials_.Add(rule);
  }

  void Append(std::uint32_t position, UnwindRow row) {
    if (position >= source_.text_limit) return;
    row.offset = position <= source_.text ? 0 : position - source_.text;
    std::vector<UnwindRow>& rows = compiled_.rows;
    if (!rows.empty() && rows.back().offset == row.offset) rows.pop_back();
    if (!rows.empty() && rows.back().rule == row.rule &&
        rows.back().special_register == row.special_register)
      return;
    if (rows.size() < kMaxCfiRows) rows.push_back(row);
  }

  void AppendFrame(std::uint32_t position, const PdataFrame& frame) {
    const UnwindRow row = RowOf(frame);
    ++compiled_.statistics.rows;
    compiled_.statistics.unknown_rows += specials_.IsLost(row.rule) ? 1 : 0;
    Append(position, row);
  }

  void Add(const RuntimeFunction& function) {
    // If two overlap, the earlier one stays. Linkers sort entries, and none overlap.
    if (function.begin < covered_ || function.end <= function.begin ||
        function.end - function.begin > kMaxFunctionBytes) {
      ++compiled_.statistics.broken_entries;
      return;
    }
    covered_ = function.end;
    ++compiled_.statistics.fdes;
    const std::optional<UnwindCodes> codes =
        internal::ReadUnwindCodes(source_.read, function.unwind);
    if (codes) {
      AddPrologue(function, *codes);
      AddEpilogues(function, *codes);
    } else {
      ++compiled_.statistics.broken_entries;
      Append(function.begin, UnwindRow());
    }
    Append(function.end, LeafRow());
  }

  void AddPrologue(const RuntimeFunction& function, const UnwindCodes& codes) {
    std::vector<std::uint8_t> steps{0};
    for (const internal::UnwindCode& code : codes.parts.front().codes)
      steps.push_back(code.prologue_offset);
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    for (const std::uint8_t step : steps) {
      if (step < function.end - function.begin)
        AppendFrame(function.begin + step, internal::FrameAt(codes, step));
    }
  }

  void AddEpilogues(const RuntimeFunction& function, const UnwindCodes& codes) {
    const std::vector<internal::UnwindCode>& own = codes.parts.front().codes;
    if (own.empty() && codes.parts.size() == 1) return;
    code_.resize(function.end - function.begin);
    code_.resize(source_.read(function.begin, code_));
    const PdataFrame body = internal::FrameAt(codes, internal::kWholePrologue);
    std::size_t prologue_bytes = codes.prologue_bytes;
    for (const internal::UnwindCode& code : own)
      prologue_bytes = std::max<std::size_t>(prologue_bytes, code.prologue_offset);
    // From instruction to instruction: bytes inside an instruction may look like an epilogue, which
    // never runs.
    for (std::size_t at = 0; at < code_.size();) {
      if (at >= prologue_bytes) {
        if (const std::optional<internal::Epilogue> epilogue = internal::MatchEpilogue(code_, at)) {
          for (std::size_t i = 0; i < epilogue->count; ++i) {
            AppendFrame(function.begin + static_cast<std::uint32_t>(epilogue->steps[i].position),
                        epilogue->steps[i].frame);
          }
          at = epilogue->end;
          AppendFrame(function.begin + static_cast<std::uint32_t>(at), body);
          continue;
        }
      }
      at += std::max<std::size_t>(1, internal::InstructionBytes(std::span(code_).subspan(at)));
    }
  }

  CompiledCfi Take() {
    compiled_.specials = specials_.Take();
    return std::move(compiled_);
  }

  const PdataSource& source_;
  const DwarfRegisters registers_ = DwarfRegistersOf(Architecture::kX86_64);
  internal::SpecialRules specials_;
  std::uint32_t covered_ = 0;
  std::vector<std::uint8_t> code_;
  CompiledCfi compiled_;
};

}  // namespace

CompiledCfi CompilePdata(const PdataSource& source) { return PdataRows(source).Compile(); }

}  // namespace strobe
