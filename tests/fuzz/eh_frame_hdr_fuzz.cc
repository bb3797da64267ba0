// Bytes as a module in memory, from its .eh_frame_hdr on: finding, measuring and reading the
// .eh_frame behind it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "fuzz_input.h"
#include "strobe/core/module_map.h"
#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/unwind_table.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

constexpr Address kImageAddress = 0x7F0000000000;
constexpr Address kTextStart = kImageAddress - 0x8000;

// The image is readable from its start to its end, but for what lies behind `hole`.
void CheckModule(const std::vector<std::uint8_t>& image, std::size_t hole,
                 Architecture architecture) {
  const std::size_t readable = std::min(hole, image.size());
  const auto read = [&](Address address, std::span<std::uint8_t> out) -> std::size_t {
    if (address < kImageAddress || address - kImageAddress >= readable) return 0;
    const auto offset = static_cast<std::size_t>(address - kImageAddress);
    const std::size_t count = std::min(out.size(), readable - offset);
    std::memcpy(out.data(), image.data() + offset, count);
    return count;
  };
  const Module module{.start = kTextStart,
                      .limit = kTextStart + 0x4000,
                      .file_offset = 0,
                      .load_bias = kTextStart,
                      .path = "hostile",
                      .build_id = {},
                      .unwind_address = kImageAddress};
  internal::CfiModules modules(architecture, read);
  const auto update = [&](const ModuleMap& map) {
    modules.Update(map);
    modules.BuildAll();
    return modules.Snapshot();
  };
  const auto first = update(ModuleMap({module}));
  const auto second = update(ModuleMap({module}));
  testing::Check(
      first->entries().size() <= 1 && first->entries().size() == second->entries().size(),
      "another snapshot of the same map");
  for (const UnwindModules::Entry& entry : first->entries()) {
    for (std::uint32_t offset = 0; offset < 0x4000; offset += 64)
      static_cast<void>(entry.table->Find(offset));
  }
  testing::Check(update(ModuleMap())->entries().empty(), "a module that has gone");
}

void Run(FuzzInput input) {
  const auto flags = input.Take<std::uint8_t>();
  const auto hole = input.Take<std::uint16_t>();
  const std::span<const std::uint8_t> bytes = input.TakeRest();
  const std::vector<std::uint8_t> image(bytes.begin(), bytes.end());
  static_cast<void>(EhFrameAddress(image, kImageAddress));
  CheckModule(image, (flags & 2) != 0 ? hole : image.size(),
              (flags & 1) != 0 ? Architecture::kAarch64 : Architecture::kX86_64);
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run(strobe::testing::FuzzInput(data, size));
  return 0;
}
