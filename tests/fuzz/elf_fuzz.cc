// Bytes as an ELF file: what the symbolizer reads of it, and the names that it makes of that.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "elf/elf_file.h"
#include "fuzz_input.h"
#include "images/byte_source.h"
#include "names/demangle.h"
#include "strobe/core/thread_info.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

constexpr std::uint64_t kLookUps[] = {0,      1,      0x1000,   0x1010,           0x1011,
                                      0x1100, 0x10FF, 0x401000, ~std::uint64_t{0}};

void Run(std::span<const std::uint8_t> bytes) {
  const std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  const internal::SpanSource source(std::as_bytes(std::span(copy)));
  const std::optional<internal::ElfFile> file = internal::ElfFile::Open(source);
  if (!file) return;
  testing::Check(file->build_id().size() % 2 == 0 &&
                     file->build_id().find_first_not_of("0123456789abcdef") == std::string::npos,
                 "a build id that is no hexadecimal number");
  static_cast<void>(file->Maps(0x1000, 0x401000));
  const internal::FunctionTable functions = file->ReadFunctions();
  const internal::FunctionTable stubs = file->ReadLinkageStubs(functions);
  internal::Demangler demangler;
  for (const std::uint64_t address : kLookUps) {
    const std::string_view name = functions.Find(address);
    testing::Check(functions.empty() ? name.empty() : true, "a name from an empty table");
    const std::string shown = demangler.Demangle(name);
    testing::Check(shown == ValidUtf8(shown), "a name that no profile can hold");
    const std::string_view stub = stubs.Find(address);
    testing::Check(stub.empty() || stub.ends_with("@plt"), "a stub that is named as a function is");
  }
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run({data, size});
  return 0;
}
