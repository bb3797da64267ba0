#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strobe::internal {

// Demangles the names of one profile within bounds. A mangled name refers back to its own parts, so
// that two hundred hostile bytes can stand for megabytes of text; such names stay as they are.
class Demangler {
 public:
  // Work that one name may cause: the estimated bytes of its text.
  static constexpr double kMaxEstimatedBytes = 1 << 27;
  // A longer text is of no use.
  static constexpr std::size_t kMaxDemangledBytes = 64 * 1024;
  // Text of all names together; those after it stay mangled.
  static constexpr std::size_t kMaxTotalBytes = std::size_t{64} << 20;

  // The name as a programmer writes it, as valid UTF-8; the same name where it is not mangled or
  // beyond a limit.
  std::string Demangle(std::string_view system_name);

 private:
  std::size_t total_bytes_ = 0;
};

// An upper estimate of a mangled name's text.
double EstimatedDemangledBytes(std::string_view mangled);

}  // namespace strobe::internal
