// Bytes as a name that a compiler of C++, Rust or D has mangled, and what the profiles show of it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "names/demangle.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/short_name.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

void Run(std::string_view bytes) {
  internal::Demangler demangler;
  for (const char* prefix : {"", "_R", "_D", "_Z"}) {
    const std::string shown = demangler.Demangle(prefix + std::string(bytes));
    Check(shown == ValidUtf8(shown), "a name that no profile can hold");
    Check(shown.size() <= internal::Demangler::kMaxDemangledBytes + bytes.size(),
          "a name beyond the limit");
    Check(ShortFunctionName(shown).size() <= shown.size(), "a short name that is longer");
  }
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
