#include "rust_names.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "letters.h"
#include "mangled_text.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxDigits = 16;  // of a constant of 64 bits

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

constexpr std::array<std::pair<char, std::string_view>, 21> kRustBasicTypes{
    {{'a', "i8"},   {'b', "bool"},  {'c', "char"},  {'d', "f64"}, {'e', "str"}, {'f', "f32"},
     {'h', "u8"},   {'i', "isize"}, {'j', "usize"}, {'l', "i32"}, {'m', "u32"}, {'n', "i128"},
     {'o', "u128"}, {'p', "_"},     {'s', "i16"},   {'t', "u16"}, {'u', "()"},  {'v', "..."},
     {'x', "i64"},  {'y', "u64"},   {'z', "!"}}};

// Reads the grammar of RFC 2603 from left to right, and writes what it says.
class RustReader : MangledText {
 public:
  explicit RustReader(std::string_view text) : MangledText(text) {}

  // The path; empty if it does not follow the grammar, or a limit is reached.
  std::string ReadSymbol() {
    Path(true);
    // The crate that a generic function is made for follows, and is not part of the name.
    if (!at_end()) {
      const std::size_t begin = written_text().size();
      Path(false);
      Cut(begin);
    }
    return Finish();
  }

 private:
  struct Identifier {
    std::uint64_t number = 0;  // tells apart what has the same name
    std::string name;
  };

  // In base 62, which "_" ends; "_" alone is 0.
  std::uint64_t Number62() {
    if (Take('_')) return 0;
    std::uint64_t number = 0;
    while (!failed() && !Take('_')) {
      const char c = Next();
      const int digit = IsDigit(c)   ? c - '0'
                        : IsLower(c) ? c - 'a' + 10
                        : IsUpper(c) ? c - 'A' + 36
                                     : -1;
      if (digit < 0 || number > (UINT64_MAX - 62) / 62) Fail();
      number = number * 62 + static_cast<std::uint64_t>(digit);
    }
    return number + 1;
  }
  std::uint64_t OptionalNumber62(char mark) { return Take(mark) ? Number62() + 1 : 0; }

  std::string Name() {
    const bool is_punycode = Take('u');
    if (!IsDigit(Peek())) Fail();
    std::size_t bytes = 0;
    // A number does not begin with 0, but for 0 itself.
    const bool is_zero = Peek() == '0';
    if (is_zero) Next();
    while (!is_zero && !failed() && IsDigit(Peek()) && bytes <= rest().size())
      bytes = bytes * 10 + static_cast<std::size_t>(Next() - '0');
    Take('_');
    const std::string_view name = TakeBytes(bytes);
    if (failed() || !is_punycode) return std::string(name);
    std::string utf8 = FromPunycode(name);
    if (utf8.empty()) Fail();
    return utf8;
  }
  Identifier ReadIdentifier() {
    const std::uint64_t number = OptionalNumber62('s');
    return {number, Name()};
  }

  // What was said before, at a place that is named.
  template <class Read>
  void Back(Read&& read) {
    const std::size_t own_place = place() - 1;
    const std::uint64_t place = Number62();
    if (failed() || place >= own_place) {
      Fail();
      return;
    }
    ReadAt(static_cast<std::size_t>(place), read);
  }

  // `is_value`: generic arguments stand behind "::", as in an expression.
  void Path(bool is_value) {
    const Level level(*this);
    if (failed()) return;
    switch (Next()) {
      case 'C': return Write(ReadIdentifier().name);
      case 'M':
        ImplPath();
        Write("<");
        Type();
        return Write(">");
      case 'X': ImplPath(); [[fallthrough]];
      case 'Y':
        Write("<");
        Type();
        Write(" as ");
        Path(false);
        return Write(">");
      case 'N': return Nested(is_value);
      case 'I':
        Path(is_value);
        Write(is_value ? "::<" : "<");
        List([this] { GenericArgument(); });
        return Write(">");
      case 'B': return Back([this, is_value] { Path(is_value); });
      default: Fail();
    }
  }

  // Where an implementation stands, which its name does not say.
  void ImplPath() {
    OptionalNumber62('s');
    const std::size_t begin = written_text().size();
    Path(false);
    Cut(begin);
  }

  void Nested(bool is_value) {
    const char space = Next();
    Path(is_value);
    const Identifier identifier = ReadIdentifier();
    if (IsLower(space)) {
      if (!identifier.name.empty()) Write(absl::StrCat("::", identifier.name));
      return;
    }
    if (!IsUpper(space)) Fail();
    const std::string kind = space == 'C'   ? "closure"
                             : space == 'S' ? "shim"
                                            : std::string(1, space);
    Write(absl::StrCat("::{", kind, identifier.name.empty() ? "" : ":", identifier.name, "#",
                       identifier.number, "}"));
  }

  // Up to an 'E'; how many there were.
  template <class Read>
  std::size_t List(Read&& read, std::string_view separator = ", ") {
    std::size_t count = 0;
    for (; !failed() && !Take('E'); ++count) {
      if (count > 0) Write(separator);
      read();
    }
    return count;
  }

  void GenericArgument() {
    if (Take('L')) {
      Lifetime(Number62());
    } else if (Take('K')) {
      Constant();
    } else {
      Type();
    }
  }

  // By how many binders ago it was bound; 0 for one without a name.
  void Lifetime(std::uint64_t number) {
    if (number == 0) return Write("'_");
    if (number > bound_) {
      Fail();
      return;
    }
    const std::uint64_t place = bound_ - number;
    if (place < 26) return Write(absl::StrCat("'", std::string(1, static_cast<char>('a' + place))));
    Write(absl::StrCat("'_", place));
  }

  // Lifetimes that `read` may name.
  template <class Read>
  void Binder(Read&& read) {
    const std::uint64_t before = bound_;
    const std::uint64_t count = OptionalNumber62('G');
    if (count > kMaxSteps) Fail();
    for (std::uint64_t i = 0; i < count && !failed(); ++i) {
      Write(i == 0 ? "for<" : ", ");
      ++bound_;
      Lifetime(1);
    }
    if (count > 0) Write("> ");
    read();
    bound_ = before;
  }

  void Reference(std::string_view mutability) {
    Write("&");
    if (Take('L')) {
      if (const std::uint64_t number = Number62(); number != 0) {
        Lifetime(number);
        Write(" ");
      }
    }
    Write(mutability);
    Type();
  }

  void Type() {
    const Level level(*this);
    if (failed()) return;
    const char c = Next();
    const auto basic =
        std::ranges::find(kRustBasicTypes, c, &std::pair<char, std::string_view>::first);
    if (basic != kRustBasicTypes.end()) return Write(basic->second);
    switch (c) {
      case 'A':
        Write("[");
        Type();
        Write("; ");
        Constant();
        return Write("]");
      case 'S':
        Write("[");
        Type();
        return Write("]");
      case 'T':
        Write("(");
        if (List([this] { Type(); }) == 1) Write(",");
        return Write(")");
      case 'R': return Reference("");
      case 'Q': return Reference("mut ");
      case 'P': Write("*const "); return Type();
      case 'O': Write("*mut "); return Type();
      case 'F': return Binder([this] { FunctionType(); });
      case 'D': return DynamicType();
      case 'B': return Back([this] { Type(); });
      default: PutBack(); Path(false);
    }
  }

  void FunctionType() {
    if (Take('U')) Write("unsafe ");
    if (Take('K')) {
      std::string abi = Take('C') ? "C" : Name();
      std::ranges::replace(abi, '_', '-');
      Write(absl::StrCat("extern \"", abi, "\" "));
    }
    Write("fn(");
    List([this] { Type(); });
    Write(")");
    if (Take('u')) return;  // "-> ()" is not written
    Write(" -> ");
    Type();
  }

  void DynamicType() {
    Write("dyn ");
    Binder([this] { List([this] { DynamicTrait(); }, " + "); });
    if (!Take('L')) Fail();
    if (const std::uint64_t number = Number62(); number != 0) {
      Write(" + ");
      Lifetime(number);
    }
  }

  // A trait, with the types that it is bound to behind its own arguments.
  void DynamicTrait() {
    Path(false);
    bool has_arguments = !failed() && written_text().ends_with('>');
    while (Take('p')) {
      if (has_arguments) {
        Cut(written_text().size() - 1);
        Write(", ");
      } else {
        Write("<");
      }
      Write(Name());
      Write(" = ");
      Type();
      Write(">");
      has_arguments = true;
    }
  }

  void Constant() {
    const Level level(*this);
    if (failed()) return;
    const char type = Next();
    if (type == 'p') return Write("_");
    if (type == 'B') return Back([this] { Constant(); });
    if (std::string_view("ahijlmnostxybc").find(type) == std::string_view::npos) {
      Fail();
      return;
    }
    const bool is_negative = Take('n');
    const std::string digits(TakeWhile(IsHexDigit));
    if (!Take('_')) Fail();
    std::uint64_t value = 0;
    const bool fits =
        digits.size() <= kMaxDigits && (digits.empty() || absl::SimpleHexAtoi(digits, &value));
    if (failed()) return;
    if (type == 'b') return Write(value != 0 ? "true" : "false");
    if (type == 'c') return Character(value);
    Write(is_negative ? "-" : "");
    Write(fits ? absl::StrCat(value) : absl::StrCat("0x", digits));
  }

  void Character(std::uint64_t value) {
    if (!IsCodePoint(value)) {
      Fail();
      return;
    }
    constexpr std::array<std::pair<char, std::string_view>, 6> kEscapes{{{'\0', "\\0"},
                                                                         {'\t', "\\t"},
                                                                         {'\n', "\\n"},
                                                                         {'\r', "\\r"},
                                                                         {'\'', "\\'"},
                                                                         {'\\', "\\\\"}}};
    const auto escape = std::ranges::find_if(kEscapes, [value](const auto& known) {
      return static_cast<std::uint64_t>(known.first) == value;
    });
    std::string text;
    if (escape != kEscapes.end()) {
      text = std::string(escape->second);
    } else if (value >= 0x20 && value != 0x7F) {
      AppendUtf8(text, static_cast<std::uint32_t>(value));
    } else {
      text = absl::StrCat("\\u{", absl::Hex(value), "}");
    }
    Write(absl::StrCat("'", text, "'"));
  }

  std::uint64_t bound_ = 0;  // lifetimes
};

}  // namespace

std::string RustName(std::string_view symbol) {
  if (!symbol.starts_with("_R") || symbol.size() < 3 || !IsUpper(symbol[2])) return {};
  // What compilers add behind the name.
  const std::size_t end = std::min(symbol.find_first_of(".$", 2), symbol.size());
  std::string name = RustReader(symbol.substr(2, end - 2)).ReadSymbol();
  const std::string_view suffix = symbol.substr(end);
  if (!name.empty() && !suffix.starts_with(".llvm.")) name.append(suffix);
  return name;
}

}  // namespace strobe::internal
