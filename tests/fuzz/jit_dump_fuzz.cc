// Bytes as a jitdump file, and what it says of some addresses.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cli/jit/jit_dump.h"
#include "images/byte_source.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

constexpr std::uint64_t kPlaces[] = {0, 1, 0x1000, 0x1010, 0x2000, ~std::uint64_t{0}};

void Run(std::span<const std::uint8_t> bytes) {
  const std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  const auto all = std::as_bytes(std::span(copy));
  internal::JitDump at_once;
  at_once.Read(internal::SpanSource(all));
  internal::JitDump in_parts;
  for (const std::size_t part : {all.size() / 3, all.size() / 2, all.size()})
    in_parts.Read(internal::SpanSource(all.first(part)));
  for (const std::uint64_t address : kPlaces) {
    for (const std::uint64_t time : kPlaces) {
      const auto name = at_once.Find(address, {time, time});
      Check(name == in_parts.Find(address, {time, time}),
            "a file that is read in parts is another");
      const auto alone = at_once.Find(address, {});
      Check(name.has_value() == alone.has_value(), "the time says whether there ever was code");
      Check(!alone || alone->empty() || time == 0 || name->empty() || *name == *alone,
            "code that was never replaced has two names");
    }
  }
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run({data, size});
  return 0;
}
