#include "d_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "d_literals.h"
#include "d_words.h"
#include "letters.h"

namespace strobe::internal {
namespace {

// Reads the grammar of D's ABI from left to right, and writes what it says.
class DReader : DLiterals {
 public:
  explicit DReader(std::string_view text) : DLiterals(text) {}

  std::string ReadSymbol() {
    MangledName();
    return Finish();
  }

 private:
  // The last part of a qualified name is one of a type, or may be a function.
  enum class Last { kType, kAny };

  template <std::size_t kCount>
  const DWords* TakeOne(const std::array<DWords, kCount>& all) {
    const auto found =
        std::ranges::find_if(all, [this](const DWords& words) { return Take(words.first); });
    return found == all.end() ? nullptr : &*found;
  }
  template <std::size_t kCount>
  [[nodiscard]] bool HasOne(const std::array<DWords, kCount>& all) const {
    return std::ranges::any_of(
        all, [this](const DWords& words) { return rest().starts_with(words.first); });
  }

  // Where the reference that follows leads to; the end of the text if it is none. It says in base
  // 26 how far before its 'Q' that is, and its last letter is a small one.
  std::size_t TakeReference() {
    const std::size_t own_place = place();
    if (!Take('Q')) return text_bytes();
    std::size_t distance = 0;
    for (bool is_last = false; !is_last && distance <= own_place;) {
      const char c = Next();
      is_last = IsLower(c);
      if (!is_last && !(c >= 'A' && c <= 'Z')) return text_bytes();
      distance = distance * 26 + static_cast<std::size_t>(c - (is_last ? 'a' : 'A'));
    }
    return distance == 0 || distance > own_place ? text_bytes() : own_place - distance;
  }
  template <class Read>
  void FollowReference(Read&& read) {
    const Level level(*this);
    const std::size_t place_of_reference = place();
    const std::size_t target = TakeReference();
    // What is referred to ends before the reference.
    if (failed() || target == text_bytes() || place_of_reference >= references_before_)
      return Fail();
    const std::size_t before = std::exchange(references_before_, place_of_reference);
    ReadAt(target, read);
    references_before_ = before;
  }
  // The first letter of what follows, behind its modifiers, where its references lead to.
  char LetterAhead() {
    char letter = '\0';
    Try([&] {
      while (TakeOne(kDTypeModifiers) != nullptr) {
      }
      letter = Peek();
      if (letter == 'Q') FollowReference([&] { letter = LetterAhead(); });
      return false;
    });
    return letter;
  }

  // Behind "_D".
  void MangledName() {
    const Level level(*this);
    const std::size_t begin = End();
    if (QualifiedName(Last::kAny)) return;
    if (Take('Z')) return MadeUp(begin);
    const std::size_t end = End();
    Type();  // of a variable, or what a function returns
    Cut(end);
  }

  void MadeUp(std::size_t begin) {
    for (const auto& [suffix, prefix] : kMadeUpDNames) {
      if (!written_text().ends_with(suffix)) continue;
      Cut(End() - suffix.size());
      const std::string owner = Cut(begin);
      Write(prefix);
      return Write(owner);
    }
  }

  bool IsTemplateAhead() { return rest().starts_with("__T") || rest().starts_with("__U"); }
  bool IsSymbolAhead() { return IsTemplateAhead() || IsDigit(LetterAhead()); }

  // True if the last part has said what the function returns, too.
  bool QualifiedName(Last last) {
    const Level level(*this);
    const std::size_t begin = End();
    bool has_whole_type = false;
    do {
      while (Take('0')) {  // what has no name
      }
      const std::size_t before = End();
      if (before > begin) Write(".");
      const std::size_t name = End();
      SymbolName();
      if (End() == name) Cut(before);
      const bool is_function = Try([&] {
        has_whole_type = FunctionOfName();
        return last == Last::kAny ? has_whole_type || !at_end() : IsSymbolAhead();
      });
      has_whole_type = has_whole_type && is_function;
    } while (!failed() && IsSymbolAhead());
    return has_whole_type;
  }

  // The parameters behind a name, and what the function's object is: "(int) const". True if it is
  // by reference to a type, which says what the function returns, too.
  bool FunctionOfName() {
    const bool is_member = Take('M');
    const std::string modifiers = is_member ? ListOf(kDTypeModifiers) : std::string();
    const bool is_reference = is_member && Peek() == 'Q';
    if (is_reference) {
      FollowReference([this] { FunctionParameters(); });
    } else {
      FunctionParameters();
    }
    Write(modifiers);
    return is_reference;
  }

  void FunctionParameters() {
    if (TakeOne(kDConventions) == nullptr) return Fail();
    ListOf(kDAttributes);
    const std::size_t begin = End();
    Parameters();
    if (written_text().ends_with(".this(this)()")) Cut(begin);
  }

  // " const shared", in the order of the text.
  template <std::size_t kCount>
  std::string ListOf(const std::array<DWords, kCount>& all) {
    std::string text;
    while (const DWords* const one = TakeOne(all)) text.append(" ").append(one->second);
    return text;
  }

  void SymbolName() {
    if (IsTemplateAhead()) return Template();
    Identifier();
  }

  void Identifier() {
    if (Peek() == 'Q') return FollowReference([this] { Identifier(); });
    const std::size_t bytes = Number();
    const std::size_t end = place() + bytes;
    // As compilers wrote templates before 2017.
    if (!failed() && IsTemplateAhead() && bytes > kTemplateMarkBytes) {
      Template();
      if (place() != end) Fail();
      return;
    }
    const std::string_view name = TakeBytes(bytes);
    // A place in a function has a number, and no name.
    if (name.starts_with("__S") && NumberIn(name.substr(3)).has_value()) return;
    const auto unnamed = std::ranges::find(kUnnamedDFunctions, name, &DWords::first);
    Write(unnamed == kUnnamedDFunctions.end() ? name : unnamed->second);
  }

  void Template() {
    const Level level(*this);
    TakeBytes(kTemplateMarkBytes);
    Identifier();
    Write("!(");
    for (bool is_first = true; !failed() && !Take('Z'); is_first = false) {
      if (!is_first) Write(", ");
      TemplateArgument();
    }
    Write(")");
  }

  void TemplateArgument() {
    Take('H');  // one for which the template is special
    switch (Next()) {
      case 'T': return Type();
      case 'V': {
        const char letter = LetterAhead();
        const std::size_t begin = End();
        Type();
        return Value(letter, Cut(begin));
      }
      case 'S': return SymbolArgument();
      case 'X': return Write(TakeBytes(Number()));
      default: Fail();
    }
  }

  void SymbolArgument() {
    if (Take("_D")) return MangledName();
    QualifiedName(Last::kAny);
  }

  void Type() {
    const Level level(*this);
    if (failed()) return;
    if (const DWords* const basic = TakeOne(kBasicDTypes)) return Write(basic->second);
    if (const DWords* const modifier = TakeOne(kDTypeModifiers)) {
      Write(modifier->second);
      return Within("(", ")");
    }
    if (HasOne(kDConventions)) return FunctionType(" function");
    if (Peek() == 'Q') return FollowReference([this] { Type(); });
    switch (Next()) {
      case 'A': return Within("", "[]");
      case 'G': {
        const std::string_view count = TakeWhile(IsDigit);
        return Within("", std::string("[").append(count).append("]"));
      }
      case 'H': return AssociativeArray();
      case 'P': return HasOne(kDConventions) ? FunctionType(" function") : Within("", "*");
      case 'D': return DelegateType();
      case 'C':
      case 'S':
      case 'E':
      case 'T':
      case 'I': QualifiedName(Last::kType); return;
      case 'B': return Tuple();
      case 'N': return Take('h') ? Within("__vector(", ")") : Fail();
      default: Fail();
    }
  }
  void Within(std::string_view before, std::string_view behind) {
    Write(before);
    Type();
    Write(behind);
  }

  void AssociativeArray() {
    const std::size_t begin = End();
    Type();
    const std::string key = Cut(begin);
    Within("", "[" + key + "]");
  }

  void Tuple() {
    Write("Tuple!(");
    const std::size_t count = Number();
    for (std::size_t i = 0; i < count && !failed(); ++i) Within(i == 0 ? "" : ", ", "");
    Write(")");
  }

  void DelegateType() {
    const std::string modifiers = ListOf(kDTypeModifiers);
    if (Peek() == 'Q') {
      FollowReference([this] { FunctionType(" delegate"); });
    } else {
      FunctionType(" delegate");
    }
    Write(modifiers);
  }

  void FunctionType(std::string_view kind) {
    const DWords* const convention = TakeOne(kDConventions);
    if (convention == nullptr) return Fail();
    Write(convention->second);
    const std::string attributes = ListOf(kDAttributes);
    const std::size_t begin = End();
    Parameters();
    const std::string parameters = Cut(begin);
    Within("", parameters);  // what it returns
    Write(attributes);
    Write(kind);
  }

  void Parameters() {
    Write("(");
    for (bool is_first = true; !failed(); is_first = false) {
      if (Take('Z')) return Write(")");
      if (Take('X')) return Write("...)");
      if (Take('Y')) return Write(is_first ? "...)" : ", ...)");
      if (!is_first) Write(", ");
      while (const DWords* const kind = TakeOne(kDParameterKinds)) Write(kind->second);
      Type();
    }
  }

  // Of a type whose first letter is `letter`.
  void Value(char letter, std::string_view type) {
    const Level level(*this);
    switch (const char kind = Next()) {
      case 'n': return Write("null");
      case 'i': return Integer(letter);
      case 'N': Write("-"); return Integer(letter);
      case 'e': return Real();
      case 'c':
        Real();
        Write("+");
        if (!Take('c')) return Fail();
        Real();
        return Write("i");
      case 'a':
      case 'w':
      case 'd': return String(kind);
      case 'A': return Values("[", letter == 'H', "]");
      case 'S': Write(type); return Values("(", false, ")");
      case 'f': return Take("_D") ? MangledName() : Fail();
      default: PutBack(); Integer(letter);
    }
  }

  void Values(std::string_view before, bool are_pairs, std::string_view behind) {
    Write(before);
    const std::size_t count = Number();
    for (std::size_t i = 0; i < count && !failed(); ++i) {
      if (i > 0) Write(", ");
      Value('\0', {});
      if (!are_pairs) continue;
      Write(":");
      Value('\0', {});
    }
    Write(behind);
  }

  [[nodiscard]] std::size_t End() const { return written_text().size(); }

  static constexpr std::size_t kTemplateMarkBytes = 3;  // "__T"

  std::size_t references_before_ = text_bytes();  // those from there on lead nowhere
};

// GDC's "_DThn16_3foo…" and "_DTi16_D3foo…" go on to "_D3foo…", with another object.
bool TakeThunkMark(std::string_view& mangled) {
  if (!mangled.starts_with("Th") && !mangled.starts_with("Ti")) return false;
  const std::size_t end = mangled.find_first_not_of("n0123456789", 2);
  if (end == std::string_view::npos || mangled[end] != '_') return false;
  mangled.remove_prefix(end + 1);
  if (mangled.starts_with('D')) mangled.remove_prefix(1);
  return true;
}

}  // namespace

std::string DName(std::string_view symbol) {
  if (symbol == "_Dmain") return "D main";
  if (!symbol.starts_with("_D")) return {};
  // What compilers add behind the name.
  const std::size_t end = std::min(symbol.find('.'), symbol.size());
  std::string_view mangled = symbol.substr(2, end - 2);
  const bool is_thunk = TakeThunkMark(mangled);
  std::string name = DReader(mangled).ReadSymbol();
  if (name.empty()) return name;
  return (is_thunk ? "non-virtual thunk to " : "") + name.append(symbol.substr(end));
}

}  // namespace strobe::internal
