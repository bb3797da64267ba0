#include "d_literals.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "letters.h"

namespace strobe::internal {
namespace {

bool IsUpperHexDigit(char c) { return IsDigit(c) || (c >= 'A' && c <= 'F'); }

std::string Escaped(std::uint32_t byte) {
  switch (byte) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
  }
  if (byte >= 0x20 && byte < 0x7F) return std::string(1, static_cast<char>(byte));
  return absl::StrCat("\\x", absl::Hex(byte, absl::kZeroPad2));
}

}  // namespace

std::optional<std::uint32_t> DLiterals::NumberIn(std::string_view digits) {
  std::uint32_t number = 0;
  if (!absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &number))
    return std::nullopt;
  return number;
}

std::size_t DLiterals::Number() {
  const std::optional<std::uint32_t> number = NumberIn(TakeWhile(IsDigit));
  if (!number) Fail();
  return number.value_or(0);
}

void DLiterals::Integer(char type) {
  const std::string_view digits = TakeWhile(IsDigit);
  if (digits.empty()) return Fail();
  switch (type) {
    case 'b': return Write(digits == "0" ? "false" : "true");
    case 'a':
    case 'u':
    case 'w': return Character(type, digits);
    default: Write(digits);
  }
  if (type == 'h' || type == 't' || type == 'k') return Write("u");
  if (type == 'l') return Write("L");
  if (type == 'm') return Write("uL");
}

void DLiterals::Character(char type, std::string_view digits) {
  const std::optional<std::uint32_t> c = NumberIn(digits);
  if (!c) return Fail();
  Write("'");
  if (type == 'a') {
    Write(Escaped(*c));
  } else if (type == 'u') {
    Write(absl::StrCat("\\u", absl::Hex(*c, absl::kZeroPad4)));
  } else {
    Write(absl::StrCat("\\U", absl::Hex(*c, absl::kZeroPad8)));
  }
  Write("'");
}

// Two hexadecimal digits for each byte.
void DLiterals::String(char kind) {
  const std::size_t bytes = Number();
  if (!Take('_')) return Fail();
  Write("\"");
  for (std::size_t i = 0; i < bytes && !failed(); ++i) {
    const std::string_view digits = TakeBytes(2);
    std::uint32_t byte = 0;
    if (!absl::SimpleHexAtoi(absl::string_view(digits.data(), digits.size()), &byte)) return Fail();
    Write(Escaped(byte));
  }
  Write("\"");
  if (kind != 'a') Write(std::string(1, kind));
}

void DLiterals::Real() {
  if (Take("NAN")) return Write("NaN");
  if (Take("NINF")) return Write("-Inf");
  if (Take("INF")) return Write("Inf");
  if (Take('N')) Write("-");
  const std::string_view digits = TakeWhile(IsUpperHexDigit);
  if (digits.empty() || !Take('P')) return Fail();
  Write("0x");
  Write(digits.substr(0, 1));
  Write(".");
  Write(digits.substr(1));
  Write(Take('N') ? "p-" : "p");
  const std::string_view exponent = TakeWhile(IsDigit);
  if (exponent.empty()) return Fail();
  Write(exponent);
}

}  // namespace strobe::internal
