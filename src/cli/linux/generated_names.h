// GeneratedNames: names of generated code, as just-in-time compilers write them for perf.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "../loaded_profile.h"
#include "strobe/base/address.h"

namespace strobe::internal {

// A text of lines "START SIZE NAME" with hexadecimal numbers (the Linux kernel's
// tools/perf/Documentation/jit-interface.txt). Lines of another form are skipped. Where ranges
// overlap, the later line counts: compilers use addresses again.
class GeneratedNames {
 public:
  // `text` must outlive the object.
  explicit GeneratedNames(std::string_view text);

  // Empty if no range has the address.
  [[nodiscard]] std::string_view NameAt(Address address) const;
  [[nodiscard]] bool empty() const { return ranges_.empty(); }

 private:
  struct Range {
    Address limit;
    std::string_view name;
  };
  std::map<Address, Range> ranges_;  // by start
};

// Names the frames of `loaded` that are in no module by /tmp/perf-PROCESS.map, if that is a file of
// this user. Bytes beyond kMaxNamesBytes are not read.
inline constexpr std::size_t kMaxNamesBytes = std::size_t{256} << 20;
void NameGeneratedCode(LoadedProfile& loaded, std::uint64_t process);
void NameGeneratedCode(LoadedProfile& loaded, const GeneratedNames& names);

}  // namespace strobe::internal
