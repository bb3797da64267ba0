// Bytes as an .eh_frame: the compiler stays within them, the table says what the rows say, and
// walks by such a table end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fuzz_input.h"
#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"
#include "strobe/unwind/unwind_table.h"
#include "support/check.h"
#include "walk_check.h"

namespace strobe::testing {
namespace {

constexpr Address kTextStart = 0x10000;
constexpr Address kEhFrameAddress = 0x40000;
constexpr std::uint32_t kMaxTextBytes = 0x8000;

void CheckRows(const CompiledCfi& compiled, std::uint32_t text_bytes) {
  testing::Check(!compiled.specials.empty() && compiled.specials[0] == SpecialRule(),
                 "the first special rule is not the unknown one");
  for (std::size_t i = 0; i < compiled.rows.size(); ++i) {
    const UnwindRow& row = compiled.rows[i];
    testing::Check(i == 0 || compiled.rows[i - 1].offset <= row.offset, "rows out of order");
    testing::Check(row.offset <= text_bytes, "a row outside of the text");
    testing::Check(row.rule.kind() != UnwindRule::Kind::kSpecial ||
                       row.rule.special_number() < compiled.specials.size(),
                   "a special rule that is not there");
  }
  testing::Check(compiled.statistics.unknown_rows <= compiled.statistics.rows,
                 "more unknown rows than rows");
}

void CheckTable(const UnwindTable& table, const std::vector<UnwindRow>& rows,
                std::uint32_t text_bytes) {
  std::size_t next = 0;
  UnwindRule rule = UnwindRule::Unknown();
  for (std::uint32_t offset = 0; offset < text_bytes; ++offset) {
    for (; next < rows.size() && rows[next].offset == offset; ++next) rule = rows[next].rule;
    testing::Check(table.Find(offset) == rule, "the table does not say what the rows say");
  }
  static_cast<void>(table.Find(text_bytes));
  static_cast<void>(table.Find(0xFFFFFFFF));
}

template <class Registers>
void Walk(const UnwindModules& modules, Registers registers, std::span<const std::uint8_t> stack) {
  CheckedWalk(ChainUnwinder<CfiStep>(&modules), registers, registers.sp, stack, 64);
  CheckedWalk(ChainUnwinder<CfiStep, FramePointerStep>(&modules), registers, registers.sp, stack,
              64);
}

void Run(FuzzInput input) {
  const auto flags = input.Take<std::uint8_t>();
  const std::uint32_t text_bytes =
      std::min<std::uint32_t>(input.Take<std::uint16_t>(), kMaxTextBytes);
  const Address pc = kTextStart + input.Take<std::uint16_t>();
  const std::span<const std::uint8_t> bytes = input.TakeRest();
  // A copy of exactly that length, so that AddressSanitizer sees a step outside.
  const std::vector<std::uint8_t> eh_frame(bytes.begin(), bytes.end());
  const bool is_aarch64 = (flags & 1) != 0;
  CompiledCfi compiled =
      CompileCfi({.architecture = is_aarch64 ? Architecture::kAarch64 : Architecture::kX86_64,
                  .eh_frame = eh_frame,
                  .eh_frame_address = kEhFrameAddress,
                  .text_start = kTextStart,
                  .text_limit = kTextStart + text_bytes});
  CheckRows(compiled, text_bytes);
  const auto table =
      std::make_shared<const UnwindTable>(text_bytes, compiled.rows, compiled.specials);
  CheckTable(*table, compiled.rows, text_bytes);
  // The section's own bytes will do for a stack.
  const UnwindModules modules({{kTextStart, kTextStart + text_bytes, table}});
  const Address sp = kTextStart - 8 * (flags >> 4);
  if (is_aarch64) {
    Walk(modules,
         Aarch64Registers{.pc = pc, .sp = sp, .fp = sp + (flags & 0xE) * 8, .lr = pc ^ 0x40},
         bytes);
  } else {
    Walk(modules, X86_64Registers{.pc = pc, .sp = sp, .fp = sp + (flags & 0xE) * 8}, bytes);
  }
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run(strobe::testing::FuzzInput(data, size));
  return 0;
}
