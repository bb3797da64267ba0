#include "demangle.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "d_names.h"
#include "rust_names.h"
#include "strobe/core/thread_info.h"
#include "strobe/symbolize/image_symbolizer.h"

#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

namespace strobe::internal {
namespace {

constexpr std::uint32_t kNoReference = 0xFFFFFFFF;

// The number of the reference S_, S0_, S1_, ... (or T_, ...) whose first letter is text[0].
std::uint32_t ReferenceNumber(std::string_view text) {
  constexpr std::size_t kMaxDigits = 4;  // more references than any name within the limit can have
  std::uint32_t number = 0;
  for (std::size_t i = 1; i < text.size() && i <= kMaxDigits + 1; ++i) {
    const char c = text[i];
    if (c == '_') return i == 1 ? 0 : number + 1;
    if (!(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z')) break;
    number = number * 36 + static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'A' + 10);
  }
  return kNoReference;
}

// Empty where it is no mangled name, or the compiler's library knows of none.
std::string CppName([[maybe_unused]] const std::string& mangled) {
#if __has_include(<cxxabi.h>)
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return text != nullptr ? LegacyRustName(text.get()) : std::string();
#else
  return {};
#endif
}

// The name of a function of C++, Rust or D; empty for others.
std::string SourceName(std::string_view mangled) {
  if (mangled.starts_with("_R")) return RustName(mangled);
  if (mangled.starts_with("_D")) return DName(mangled);
  if (!mangled.starts_with("_Z") ||
      EstimatedDemangledBytes(mangled) > Demangler::kMaxEstimatedBytes)
    return {};
  // The compiler's library does not know all that rustc puts behind a name.
  constexpr std::string_view kHash = "17h";
  constexpr std::size_t kHashBytes = kHash.size() + 16;
  const std::size_t end = mangled.rfind("E.");
  const bool is_rust = end != std::string_view::npos && end > kHashBytes &&
                       mangled.substr(end - kHashBytes, kHash.size()) == kHash;
  if (!is_rust) return CppName(std::string(mangled));
  std::string name = CppName(std::string(mangled.substr(0, end + 1)));
  const std::string_view suffix = mangled.substr(end + 1);
  return name.empty() || suffix.starts_with(".llvm.") ? name : name.append(suffix);
}

}  // namespace

// References are numbered in the order in which their targets end. So the target of number n stands
// whole before the first reference to n or to anything above it, and its text is no longer than the
// text up to there.
double EstimatedDemangledBytes(std::string_view mangled) {
  constexpr double kMaxBytesPerLetter = 20;      // "unsigned long long"
  constexpr double kMaxBytesPerShorthand = 100;  // "std::basic_string<...>"
  struct Highest {
    std::uint32_t number;
    double bytes_before;
  };
  std::vector<Highest> substitutions;  // each time that a higher number appeared
  std::vector<Highest> parameters;
  double bytes = 0;
  for (std::size_t i = 0; i < mangled.size(); ++i) {
    const char c = mangled[i];
    const std::uint32_t number =
        c == 'S' || c == 'T' ? ReferenceNumber(mangled.substr(i)) : kNoReference;
    if (number == kNoReference) {
      bytes += c == 'S' ? kMaxBytesPerShorthand : kMaxBytesPerLetter;
      continue;
    }
    std::vector<Highest>& seen = c == 'S' ? substitutions : parameters;
    if (seen.empty() || seen.back().number < number) seen.push_back({number, bytes});
    bytes +=
        std::lower_bound(seen.begin(), seen.end(), number,
                         [](const Highest& entry, std::uint32_t n) { return entry.number < n; })
            ->bytes_before;
  }
  return bytes;
}

std::string Demangler::Demangle(std::string_view system_name) {
  // The suffix of a linkage stub is not part of the mangled name.
  const std::size_t mangled_bytes = std::min(system_name.find('@'), system_name.size());
  const std::string_view mangled = system_name.substr(0, mangled_bytes);
  if (mangled.size() > ImageSymbolizer::kMaxMangledBytes || total_bytes_ > kMaxTotalBytes)
    return ValidUtf8(system_name);
  std::string name = SourceName(mangled);
  total_bytes_ += name.size();
  if (name.empty() || name.size() > kMaxDemangledBytes) return ValidUtf8(system_name);
  return ValidUtf8(name.append(system_name.substr(mangled_bytes)));
}

}  // namespace strobe::internal
