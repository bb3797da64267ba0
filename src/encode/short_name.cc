#include "strobe/encode/short_name.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <vector>

namespace strobe {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsIdentifier(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// The longest operator that `text` begins with; empty if it begins with none. An operator stands
// before those that it begins with.
std::string_view OperatorSymbol(std::string_view text) {
  constexpr std::string_view kSymbols[] = {
      "<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->", "==", "!=",
      "&&",  "||",  "++",  "--",  "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<",
      ">",   "+",   "-",   "*",   "/",  "%",  "^",  "&",  "|",  "~",  "!",  "=",  ","};
  for (const std::string_view symbol : kSymbols) {
    if (text.starts_with(symbol)) return symbol;
  }
  return {};
}

// What a C++ demangler writes in front of the name of a function that is not one of the source.
std::string_view SpecialPrefix(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {"non-virtual thunk to ",
                                            "virtual thunk to ",
                                            "covariant return thunk to ",
                                            "TLS init function for ",
                                            "TLS wrapper function for ",
                                            "transaction clone for ",
                                            "guard variable for ",
                                            "vtable for ",
                                            "typeinfo for "};
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return prefix;
  }
  return {};
}

// Removes the suffixes that GCC and LLVM give to clones: ".part.0", ".isra.0.cold".
std::string_view WithoutCloneSuffix(std::string_view name) {
  constexpr std::string_view kSuffixes[] = {".cold",     ".part", ".isra",      ".constprop",
                                            ".lto_priv", ".llvm", ".localalias"};
  for (;;) {
    std::string_view rest = name;
    while (!rest.empty() && IsDigit(rest.back())) rest.remove_suffix(1);
    const bool is_numbered = rest.size() < name.size() && rest.ends_with('.');
    if (is_numbered) rest.remove_suffix(1);
    const auto suffix = std::ranges::find_if(kSuffixes, [rest](std::string_view text) {
      return rest.ends_with(text) && rest.size() > text.size();
    });
    if (suffix == std::end(kSuffixes) || (!is_numbered && *suffix != ".cold")) return name;
    name = rest.substr(0, rest.size() - suffix->size());
  }
}

// Removes the hash that Rust's older mangling ends names with.
std::string_view WithoutRustHash(std::string_view name) {
  constexpr std::size_t kDigits = 16;
  constexpr std::string_view kMark = "::h";
  if (name.size() <= kMark.size() + kDigits) return name;
  const std::string_view rest = name.substr(0, name.size() - kDigits);
  const bool is_hash =
      rest.ends_with(kMark) && std::ranges::all_of(name.substr(rest.size()), [](char c) {
        return IsDigit(c) || (c >= 'a' && c <= 'f');
      });
  return is_hash ? rest.substr(0, rest.size() - kMark.size()) : name;
}

// Reads a name from its begin to its end. A step returns false where the text is no C++, Rust or D.
class Shortener {
 public:
  explicit Shortener(std::string_view text) : text_(text) {}

  // Nullopt if the text is not understood.
  std::optional<std::string> Run() {
    while (at_ < text_.size() && !is_complete_) {
      if (!Step()) return std::nullopt;
    }
    // Only what has parameters has a return type: other texts with spaces are no C++.
    if (name_.empty() || (has_spaces_ && !has_parameters_)) return std::nullopt;
    return std::move(name_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

  void Copy(std::size_t count) {
    name_ += text_.substr(at_, count);
    at_ += count;
  }

  bool Step() {
    if (rest().starts_with(kAnonymous)) return Copy(kAnonymous.size()), true;
    if (IsOperator()) return Operator();
    switch (text_[at_]) {
      case '{': return Braces();
      case '<': return Angles();
      case '[': return Brackets();
      case '!': return Exclamation();
      case '(': return Parameters();
      case ' ': return Space();
      case '`': return Quoted();
      case ')':
      case ']':
      case '}':
      case '>': return false;
      default: Copy(1); return true;
    }
  }

  // One past the bracket that closes the one at `begin`; nullopt if none does. Expressions among
  // template arguments stand in parentheses, so that a bare '<' or '>' there is an operator.
  [[nodiscard]] std::optional<std::size_t> GroupEnd(std::size_t begin) const {
    std::vector<char> open;
    for (std::size_t i = begin; i < text_.size(); ++i) {
      switch (text_[i]) {
        case '(':
        case '[':
        case '{':
        case '<': open.push_back(text_[i]); break;
        case '>':
          if (open.back() == '<' && text_[i - 1] != '-') open.pop_back();
          break;
        case ')':
        case ']':
        case '}':
          while (!open.empty() && open.back() == '<') open.pop_back();
          if (open.empty() || !Matches(open.back(), text_[i])) return std::nullopt;
          open.pop_back();
          break;
        default: break;
      }
      if (open.empty()) return i + 1;
    }
    return std::nullopt;
  }
  static bool Matches(char open, char close) {
    return (open == '(' && close == ')') || (open == '[' && close == ']') ||
           (open == '{' && close == '}');
  }

  bool SkipGroup() {
    const std::optional<std::size_t> end = GroupEnd(at_);
    if (end.has_value()) at_ = *end;
    return end.has_value();
  }
  bool CopyGroup() {
    const std::optional<std::size_t> end = GroupEnd(at_);
    if (end.has_value()) Copy(*end - at_);
    return end.has_value();
  }

  // "{lambda(int)#1}" loses its parameters.
  bool Braces() {
    const std::optional<std::size_t> end = GroupEnd(at_);
    if (!end.has_value()) return false;
    while (at_ < *end) {
      const bool is_list = text_[at_] == '(' || text_[at_] == '<';
      if (!is_list) {
        Copy(1);
      } else if (!SkipGroup()) {
        return false;
      }
    }
    return true;
  }

  // Template arguments. A name that begins with them is Rust's "<A as B>::f"; after "::" they are
  // Rust's "f::<T>", or the name of a lambda by Microsoft's compiler.
  bool Angles() {
    if (name_.empty() || rest().starts_with("<lambda")) return CopyGroup();
    if (name_.ends_with("::")) name_.resize(name_.size() - 2);
    return SkipGroup();
  }

  // Template arguments of D.
  bool Exclamation() {
    if (!rest().starts_with("!(")) return Copy(1), true;
    ++at_;
    return SkipGroup();
  }

  // An ABI tag goes, everything else stays.
  bool Brackets() { return rest().starts_with("[abi:") ? SkipGroup() : CopyGroup(); }

  // Microsoft's "`anonymous namespace'".
  bool Quoted() {
    const std::size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) return false;
    Copy(end + 1 - at_);
    return true;
  }

  // What came was the return type, or a part of it.
  bool Space() {
    if (IsCloneMark()) return is_complete_ = true;
    ++at_;
    if (name_ == "decltype" && rest().starts_with('(')) return SkipGroup();
    has_spaces_ = true;
    name_.clear();
    return true;
  }
  [[nodiscard]] bool IsCloneMark() const {
    return rest().starts_with(" [clone ") || rest().starts_with(" (.");
  }

  bool Parameters() {
    // The name of what returns a pointer to a function stands in parentheses.
    if (name_.empty() || !SkipGroup()) return false;
    if (name_ == "decltype") return true;
    has_parameters_ = true;
    SkipQualifiers();
    // What follows is within the function. D writes a '.', as GCC does before the mark of a clone.
    if (at_ == text_.size() || rest().starts_with("::") || rest().starts_with('.')) return true;
    if (IsCloneMark() || rest().starts_with(" requires ")) return is_complete_ = true;
    if (!rest().starts_with('@')) return false;
    name_ += rest();  // "@plt": a linkage stub
    return is_complete_ = true;
  }
  void SkipQualifiers() {
    constexpr std::string_view kQualifiers[] = {" const",  " volatile", " noexcept", " &&",
                                                " &",      "&&",        "&",         " inout",
                                                " shared", " immutable"};
    for (bool is_found = true; is_found;) {
      is_found = false;
      for (const std::string_view qualifier : kQualifiers) {
        if (!rest().starts_with(qualifier)) continue;
        at_ += qualifier.size();
        is_found = true;
      }
    }
  }

  static constexpr std::string_view kOperator = "operator";

  [[nodiscard]] bool IsOperator() const {
    if (!rest().starts_with(kOperator) || (at_ > 0 && IsIdentifier(text_[at_ - 1]))) return false;
    return at_ + kOperator.size() < text_.size() && !IsIdentifier(text_[at_ + kOperator.size()]);
  }

  bool Operator() {
    Copy(kOperator.size());
    if (const std::string_view symbol = OperatorSymbol(rest()); !symbol.empty()) {
      Copy(symbol.size());
      if (rest().starts_with(" <")) ++at_;  // template arguments, apart from the symbol
      return true;
    }
    // A conversion, new, delete, co_await, or a literal's suffix: up to the parameters.
    while (at_ < text_.size()) {
      if (rest().starts_with(kAnonymous)) {
        Copy(kAnonymous.size());
      } else if (text_[at_] == '(') {
        return true;
      } else if (text_[at_] == '<') {
        if (!SkipGroup()) return false;
      } else {
        Copy(1);
      }
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string name_;
  bool has_spaces_ = false;
  bool has_parameters_ = false;
  bool is_complete_ = false;
};

}  // namespace

std::string ShortFunctionName(std::string_view full_name) {
  const bool is_objective_c = full_name.starts_with("-[") || full_name.starts_with("+[");
  const bool is_go = full_name.find(".(") != std::string_view::npos;
  if (is_objective_c || is_go || full_name.starts_with('[')) return std::string(full_name);
  const std::string_view prefix = SpecialPrefix(full_name);
  const std::optional<std::string> name = Shortener(full_name.substr(prefix.size())).Run();
  if (!name.has_value()) return std::string(full_name);
  return std::string(prefix).append(WithoutRustHash(WithoutCloneSuffix(*name)));
}

}  // namespace strobe
