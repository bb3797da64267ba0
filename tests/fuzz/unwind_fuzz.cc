// Registers and a stack over the real tables of this very program and its libraries: every walk
// ends and stays within its stack.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "fuzz_input.h"
#include "strobe/core/module_map.h"
#include "strobe/platform/native.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"
#include "strobe/unwind/frame_pointer_unwinder.h"
#include "support/check.h"
#include "walk_check.h"

namespace strobe::testing {
namespace {

constexpr std::size_t kMaxFrames = 256;
constexpr Address kStackBase = 0x7FF000000000;

const UnwindModules& RealModules() {
  static const auto* const modules = [] {
    internal::CfiModules compiled(kNativeArchitecture, &NativePlatform::ReadMemory);
    compiled.Update(ModuleMap(NativePlatform::Modules()));
    compiled.BuildAll();
    const auto snapshot = compiled.Snapshot();
    testing::Check(snapshot->entries().size() >= 2, "no tables of this program and its C library");
    return new UnwindModules(*snapshot);
  }();
  return *modules;
}

// One word from four bytes, such as walks go on from: some code, a place on the stack, or the
// number itself. The lowest two bits choose.
Address WordOf(std::uint32_t code) {
  const std::uint32_t value = code >> 2;
  switch (code & 3) {
    case 0: return value;
    case 1: return kStackBase + value % 0x4000;
    case 2: return kStackBase + value % 0x800 * 8;
    default: {
      const auto& entries = RealModules().entries();
      const UnwindModules::Entry& entry = entries[(value >> 26) % entries.size()];
      return entry.start + (value & 0x3FFFFFF) % (entry.limit - entry.start);
    }
  }
}

template <class Registers>
void Walk(const Registers& registers, Address base, std::span<const std::uint8_t> stack) {
  CheckedWalk(ChainUnwinder<CfiStep>(&RealModules()), registers, base, stack, kMaxFrames);
  CheckedWalk(ChainUnwinder<CfiStep, FramePointerStep>(&RealModules()), registers, base, stack,
              kMaxFrames);
  CheckedWalk(FramePointerUnwinder(), registers, base, stack, kMaxFrames);
}

void Run(FuzzInput input) {
  const auto flags = input.Take<std::uint8_t>();
  Address registers[4];
  for (Address& value : registers)
    value = (flags & 1) != 0 ? input.Take<Address>() : WordOf(input.Take<std::uint32_t>());
  const Address base = (flags & 2) != 0 ? registers[1] : kStackBase;
  std::vector<std::uint8_t> stack;
  if ((flags & 4) != 0) {
    const auto rest = input.TakeRest();
    stack.assign(rest.begin(), rest.end());
  }
  while (!input.empty()) {
    const Address word = WordOf(input.Take<std::uint32_t>());
    stack.resize(stack.size() + sizeof(word));
    std::memcpy(stack.data() + stack.size() - sizeof(word), &word, sizeof(word));
  }
  Walk(X86_64Registers{.pc = registers[0], .sp = registers[1], .fp = registers[2]}, base, stack);
  // The other architecture's registers by the same tables: they mean nothing to it, and the walk
  // must end all the same.
  Walk(
      Aarch64Registers{
          .pc = registers[0], .sp = registers[1], .fp = registers[2], .lr = registers[3]},
      base, stack);
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run(strobe::testing::FuzzInput(data, size));
  return 0;
}
