// Bytes as the .pdata, .xdata and code of a Windows image: the compiler stays within them and ends,
// and its rows are in order.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fuzz_input.h"
#include "strobe/unwind/pdata_compiler.h"
#include "strobe/unwind/unwind_table.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

void Run(FuzzInput input) {
  const std::uint32_t text_bytes = input.Take<std::uint16_t>();
  const std::uint32_t pdata_bytes = input.Take<std::uint16_t>();
  const std::span<const std::uint8_t> image = input.TakeRest();
  // The entries come first, so that a few of the bytes make one whose code and codes are other
  // bytes.
  const CompiledCfi compiled =
      CompilePdata({.read =
                        [image](Address position, std::span<std::uint8_t> bytes) {
                          if (position >= image.size()) return std::size_t{0};
                          const std::size_t count = std::min(bytes.size(), image.size() - position);
                          std::copy_n(image.begin() + position, count, bytes.begin());
                          return count;
                        },
                    .pdata = 0,
                    .pdata_bytes = pdata_bytes,
                    .text = 0,
                    .text_limit = text_bytes});
  for (std::size_t i = 0; i < compiled.rows.size(); ++i) {
    const UnwindRow& row = compiled.rows[i];
    testing::Check(i == 0 || compiled.rows[i - 1].offset < row.offset, "rows out of order");
    testing::Check(row.offset == 0 || row.offset < text_bytes, "a row outside of the text");
    testing::Check(row.rule.kind() != UnwindRule::Kind::kSpecial ||
                       row.rule.special_number() < compiled.specials.size(),
                   "a special rule that is not there");
  }
  testing::Check(compiled.statistics.unknown_rows <= compiled.statistics.rows,
                 "more unknown rows than rows");
  const UnwindTable table(text_bytes, compiled.rows, compiled.specials);
  for (const UnwindRow& row : compiled.rows)
    testing::Check(table.Find(row.offset) == row.rule, "the table does not say what the rows say");
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run(strobe::testing::FuzzInput(data, size));
  return 0;
}
