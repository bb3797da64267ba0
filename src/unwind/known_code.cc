#include "strobe/unwind/known_code.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "arch/known_instructions.h"
#include "arch/linkage_stub.h"
#include "strobe/arch/aarch64.h"

namespace strobe {
namespace {

// Gives [begin, end) the rule, whatever the rows said of it.
void SetRule(CompiledCfi& compiled, std::uint32_t begin, std::uint32_t end, UnwindRule rule,
             SavedRegister special = {}) {
  const UnwindRow row{.offset = begin, .rule = rule, .special_register = special};
  ReplaceRows(compiled, begin, end, {&row, 1});
}

}  // namespace

SpecialRule Aarch64SignalFrame() {
  const auto at = [](std::int32_t offset) {
    return SpecialRule::Location{.where = SpecialRule::Where::kMemory,
                                 .base = SpecialRule::Base::kSp,
                                 .other = 0,
                                 .offset = offset};
  };
  return {.cfa = SpecialRule::Cfa::kMemory,
          .cfa_base = SpecialRule::Base::kSp,
          .cfa_other = 0,
          .cfa_offset = kAarch64SignalFrameSp,
          .ra = at(kAarch64SignalFramePc),
          .fp = at(kAarch64SignalFrameX29),
          .lr = at(kAarch64SignalFrameX30),
          .is_signal_frame = true};
}

void AddAarch64SignalTrampolines(std::span<const std::uint8_t> text, CompiledCfi& compiled) {
  // A handler returns to the first instruction, and a walk looks return addresses up one byte
  // lower, so the rule begins before the instruction.
  constexpr std::uint32_t kBeforeBytes = 4;
  const UnwindRule rule = UnwindRule::Special(static_cast<std::uint32_t>(compiled.specials.size()));
  bool is_found = false;
  for (const std::size_t at : internal::FindAarch64SignalReturns(text)) {
    if (at < kBeforeBytes) continue;
    const auto begin = static_cast<std::uint32_t>(at);
    SetRule(compiled, begin - kBeforeBytes,
            begin + std::uint32_t{internal::kAarch64SignalReturnBytes}, rule);
    is_found = true;
  }
  if (is_found) compiled.specials.push_back(Aarch64SignalFrame());
}

void AddStackProbes(std::span<const std::uint8_t> text, CompiledCfi& compiled) {
  const auto pushed = [&](std::size_t begin, std::size_t end, std::uint32_t words) {
    SetRule(compiled, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end),
            UnwindRule::Frame(UnwindRule::Kind::kFromSp, 1 + words, 1, 0),
            {.where = SavedRegister::kUnchanged});
  };
  for (const internal::StackProbe& probe : internal::FindStackProbes(text)) {
    pushed(probe.begin + 1, probe.begin + 2, 1);
    pushed(probe.begin + 2, probe.pop + 1, 2);
    pushed(probe.pop + 1, probe.pop + 2, 1);
  }
}

void AddKnownStackEnds(std::uint32_t offset, std::span<const std::uint8_t> text,
                       CompiledCfi& compiled) {
  for (const std::size_t end : internal::FindStackEnds(text))
    AddStackEnd(offset + static_cast<std::uint32_t>(end), compiled);
}

void AddLinkageStubs(std::uint32_t offset, std::span<const std::uint8_t> text,
                     CompiledCfi& compiled) {
  const std::vector<internal::StubRow> stubs = internal::FindX86StubRows(text);
  if (stubs.empty()) return;
  std::vector<UnwindRow> rows = {{.offset = offset, .rule = UnwindRule::Unknown()}};
  for (const internal::StubRow& stub : stubs) {
    UnwindRow row{.offset = offset + static_cast<std::uint32_t>(stub.offset),
                  .rule = UnwindRule::Unknown()};
    if (stub.pushed_words != internal::StubRow::kNoStub) {
      row.rule = UnwindRule::Frame(UnwindRule::Kind::kFromSp, 1 + stub.pushed_words, 1, 0);
      row.special_register = {.where = SavedRegister::kUnchanged};
    }
    if (rows.back().offset == row.offset) rows.pop_back();
    rows.push_back(row);
  }
  ReplaceRows(compiled, offset, offset + static_cast<std::uint32_t>(text.size()), rows);
}

void ReplaceRows(CompiledCfi& compiled, std::uint32_t begin, std::uint32_t end,
                 std::span<const UnwindRow> rows) {
  const auto first = std::ranges::lower_bound(compiled.rows, begin, {}, &UnwindRow::offset);
  const auto last =
      std::ranges::lower_bound(first, compiled.rows.end(), end, {}, &UnwindRow::offset);
  // What holds from `end` on.
  UnwindRow after = last == compiled.rows.begin() ? UnwindRow() : *std::prev(last);
  after.offset = end;
  const bool has_after = last != compiled.rows.end() && last->offset == end;
  if (!rows.empty() && rows.back().offset == end) rows = rows.first(rows.size() - 1);
  auto at = compiled.rows.erase(first, last);
  if (!has_after) at = compiled.rows.insert(at, after);
  compiled.rows.insert(at, rows.begin(), rows.end());
}

std::vector<UnknownStretch> UnknownStretches(const CompiledCfi& compiled, std::uint32_t text_bytes,
                                             std::uint32_t least_bytes) {
  std::vector<UnknownStretch> stretches;
  std::uint32_t begin = 0;
  bool is_unknown = true;
  const auto end_at = [&](std::uint32_t end) {
    if (is_unknown && end >= begin && end - begin >= least_bytes) stretches.push_back({begin, end});
  };
  for (const UnwindRow& row : compiled.rows) {
    const bool was_unknown = is_unknown;
    if (row.rule != UnwindRule::Unknown()) end_at(row.offset);
    is_unknown = row.rule == UnwindRule::Unknown();
    if (is_unknown && !was_unknown) begin = row.offset;
  }
  end_at(text_bytes);
  return stretches;
}

void AddStackEnd(std::uint32_t offset, CompiledCfi& compiled) {
  if (offset != 0) SetRule(compiled, offset - 1, offset, UnwindRule::Stop());
}

}  // namespace strobe
