#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strobe::internal {

// Demangles the names of one profile, of C++, Rust and D, within limits. A mangled name refers back
// to its own parts, so two hundred hostile bytes can stand for megabytes of text. Such names stay
// mangled.
class Demangler {
 public:
  // The most work for one name of C++: the estimated bytes of its text.
  static constexpr double kMaxEstimatedBytes = 1 << 27;
  // A longer text is of no use.
  static constexpr std::size_t kMaxDemangledBytes = 64 * 1024;
  // The text of all names together; names beyond it stay mangled.
  static constexpr std::size_t kMaxTotalBytes = std::size_t{64} << 20;

  // The name as in the source code, as valid UTF-8. Returns `name` if it is not mangled or exceeds
  // a limit.
  std::string Demangle(std::string_view system_name);

 private:
  std::size_t total_bytes_ = 0;
};

// An upper estimate of a mangled name's text.
double EstimatedDemangledBytes(std::string_view mangled);

}  // namespace strobe::internal
