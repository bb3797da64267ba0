#include "pattern_program.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"

namespace strobe::internal {
namespace {

constexpr char32_t kLastCharacter = 0x10FFFF;
constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kMaxRepetitions = 1000;

CharacterSet Inverse(CharacterSet set) {
  set.is_inverse = !set.is_inverse;
  return set;
}

// "\d", "\w", "\s", and those in capital letters, which are their inverses.
std::optional<CharacterSet> NamedSet(char32_t letter) {
  switch (letter) {
    case 'd': return CharacterSet{{{'0', '9'}}};
    case 'w': return CharacterSet{{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}};
    case 's': return CharacterSet{{{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}, {0x2028, 0x2029}}};
    case 'D': return Inverse(*NamedSet('d'));
    case 'W': return Inverse(*NamedSet('w'));
    case 'S': return Inverse(*NamedSet('s'));
    default: return std::nullopt;
  }
}

// "[:alpha:]" and the others, in ASCII.
std::optional<CharacterSet> ClassNamed(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, bool (*)(unsigned char)>, 7> kClasses = {
      {{"alpha", absl::ascii_isalpha},
       {"digit", absl::ascii_isdigit},
       {"alnum", absl::ascii_isalnum},
       {"space", absl::ascii_isspace},
       {"upper", absl::ascii_isupper},
       {"lower", absl::ascii_islower},
       {"punct", absl::ascii_ispunct}}};
  const auto found =
      std::ranges::find(kClasses, name, [](const auto& known) { return known.first; });
  if (found == kClasses.end()) return std::nullopt;
  CharacterSet set;
  for (unsigned char c = 0; c < 0x80; ++c) {
    if (found->second(c)) set.ranges.emplace_back(c, c);
  }
  return set;
}

// Adds what `other` has.
void Add(CharacterSet& set, const CharacterSet& other) {
  if (!other.is_inverse) {
    set.ranges.insert(set.ranges.end(), other.ranges.begin(), other.ranges.end());
    return;
  }
  char32_t next = 0;
  for (const auto& [first, last] : other.ranges) {  // in order: those of NamedSet are
    if (first > next) set.ranges.emplace_back(next, first - 1);
    next = last + 1;
  }
  set.ranges.emplace_back(next, kLastCharacter);
}

// What a part of the text means.
struct Node {
  enum class Kind { kSequence, kChoice, kRepetition, kCharacter, kAssertion };
  Kind kind = Kind::kSequence;
  std::vector<std::uint32_t> parts{};
  std::uint32_t set = 0;
  PatternProgram::Step assertion = PatternProgram::Step::kBegin;
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

// Reads the text into nodes. `problem` is set once it does not read as a pattern.
class Parser {
 public:
  Parser(std::string_view text, std::vector<CharacterSet>& sets) : rest_(text), sets_(sets) {}

  std::uint32_t Run() {
    const std::uint32_t root = Choice();
    if (problem == nullptr && !rest_.empty()) problem = "a ')' closes nothing";
    return root;
  }

  std::vector<Node> nodes;
  const char* problem = nullptr;

 private:
  std::uint32_t Keep(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(nodes.size() - 1);
  }
  std::uint32_t Fail(const char* what) {
    if (problem == nullptr) problem = what;
    return Keep({});
  }
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  std::uint32_t Choice() {
    Node node{.kind = Node::Kind::kChoice};
    do node.parts.push_back(Sequence());
    while (problem == nullptr && Take("|"));
    return node.parts.size() == 1 ? node.parts[0] : Keep(std::move(node));
  }

  std::uint32_t Sequence() {
    Node node;
    while (problem == nullptr && !rest_.empty() && rest_[0] != '|' && rest_[0] != ')')
      node.parts.push_back(Repeated());
    return Keep(std::move(node));
  }

  std::uint32_t Repeated() {
    Node node{.kind = Node::Kind::kRepetition, .parts = {Atom()}};
    if (problem != nullptr || !TakeAmount(node)) return node.parts[0];
    Take("?");  // a lazy one
    return Keep(std::move(node));
  }

  bool TakeAmount(Node& node) {
    node.most = kNoLimit;
    if (Take("*")) return true;
    if (Take("+")) return node.least = 1, true;
    if (Take("?")) return node.most = 1, true;
    const std::string_view before = rest_;
    if (!Take("{") || !TakeNumber(node.least)) return rest_ = before, false;
    if (!Take(",")) {
      node.most = node.least;
    } else if (!rest_.starts_with('}') && !TakeNumber(node.most)) {
      return rest_ = before, false;
    }
    if (!Take("}")) return rest_ = before, false;
    if (node.most < node.least) Fail("a repetition has less at the most than at the least");
    if (node.least > kMaxRepetitions || (node.most != kNoLimit && node.most > kMaxRepetitions))
      Fail("a repetition is too long");
    return true;
  }
  bool TakeNumber(std::uint32_t& number) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }

  std::uint32_t Atom() {
    if (Take("(")) return Group();
    if (Take("[")) return OfSet(Class());
    if (Take("^")) return Keep({.kind = Node::Kind::kAssertion});
    if (Take("$")) return Assertion(PatternProgram::Step::kEnd);
    if (Take("\\b")) return Assertion(PatternProgram::Step::kWordEdge);
    if (Take("\\B")) return Assertion(PatternProgram::Step::kNoWordEdge);
    if (Take(".")) return OfSet({{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}, true});
    if (Node amount; TakeAmount(amount)) return Fail("nothing is repeated");
    return OfSet(Character());
  }
  std::uint32_t OfSet(CharacterSet set) {
    sets_.push_back(std::move(set));
    return Keep(
        {.kind = Node::Kind::kCharacter, .set = static_cast<std::uint32_t>(sets_.size() - 1)});
  }
  std::uint32_t Assertion(PatternProgram::Step step) {
    return Keep({.kind = Node::Kind::kAssertion, .assertion = step});
  }

  std::uint32_t Group() {
    if (!Take("?:") && rest_.starts_with('?')) return Fail("a group of this kind is not known");
    if (depth_ == kMaxPatternDepth) return Fail("the groups are too deep");
    ++depth_;
    const std::uint32_t inside = Choice();
    --depth_;
    return problem != nullptr || Take(")") ? inside : Fail("a '(' is not closed");
  }

  // Up to the ']'.
  CharacterSet Class() {
    CharacterSet set;
    const bool is_inverse = Take("^");
    while (problem == nullptr && !Take("]")) {
      if (rest_.empty()) return Fail("a '[' is not closed"), set;
      if (Take("[:")) {
        const std::size_t end = std::min(rest_.find(":]"), rest_.size());
        const std::optional<CharacterSet> known = ClassNamed(rest_.substr(0, end));
        if (!known.has_value()) return Fail("a class has no such name"), set;
        Add(set, *known);
        rest_.remove_prefix(end + 2);
        continue;
      }
      const CharacterSet first = Character(true);
      const bool is_range = rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']';
      if (!is_range || !IsOne(first)) {
        Add(set, first);
        continue;
      }
      rest_.remove_prefix(1);
      const CharacterSet last = Character(true);
      if (problem != nullptr) return set;
      if (!IsOne(last) || last.ranges[0].first < first.ranges[0].first)
        return Fail("a range ends before its begin"), set;
      set.ranges.emplace_back(first.ranges[0].first, last.ranges[0].first);
    }
    set.is_inverse = is_inverse;
    return set;
  }
  static bool IsOne(const CharacterSet& set) {
    return !set.is_inverse && set.ranges.size() == 1 && set.ranges[0].first == set.ranges[0].second;
  }

  // A character, or what stands for one.
  CharacterSet Character(bool is_in_class = false) {
    char32_t c = TakeCharacter(rest_);
    if (c == '\\') c = Escaped(is_in_class);
    if (named_.has_value()) return *std::exchange(named_, std::nullopt);
    return {{{c, c}}};
  }

  // Behind a '\'. Sets `named_` if it is more than one character.
  char32_t Escaped(bool is_in_class) {
    if (rest_.empty()) return Fail("a '\\' is the last character"), U'\0';
    const char32_t c = TakeCharacter(rest_);
    named_ = NamedSet(c);
    switch (c) {
      case 't': return '\t';
      case 'n': return '\n';
      case 'v': return '\v';
      case 'f': return '\f';
      case 'r': return '\r';
      case 'x': return OfDigits(2);
      case 'u': return OfDigits(4);
      case '0': return 0;
      case 'b':
        if (is_in_class) return '\b';
        break;
      default: break;
    }
    if (!named_.has_value() && c < 0x80 && absl::ascii_isalnum(static_cast<unsigned char>(c)))
      Fail(c <= '9' ? "a reference back is not known" : "a letter behind a '\\' means nothing");
    return c;
  }
  char32_t OfDigits(std::size_t count) {
    std::uint32_t number = 0;
    const std::string_view digits = rest_.substr(0, count);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    if (digits.size() < count || error != std::errc() || end != digits.data() + count)
      return Fail("a character's number has too few digits"), U'\0';
    rest_.remove_prefix(count);
    return number;
  }

  std::string_view rest_;
  std::vector<CharacterSet>& sets_;
  std::optional<CharacterSet> named_;
  int depth_ = 0;
};

// Makes instructions of nodes.
class Assembler {
 public:
  Assembler(const std::vector<Node>& nodes, std::vector<PatternProgram::Instruction>& instructions)
      : nodes_(nodes), instructions_(instructions) {}

  // False if they are too many.
  bool Run(std::uint32_t root) {
    Emit(nodes_[root]);
    Append({PatternProgram::Step::kFound});
    return !IsFull();
  }

 private:
  using Step = PatternProgram::Step;

  // Nodes that make no instruction count as well.
  [[nodiscard]] bool IsFull() const {
    return instructions_.size() > kMaxInstructions || visited_ > kMaxInstructions;
  }
  [[nodiscard]] std::uint32_t next() const {
    return static_cast<std::uint32_t>(instructions_.size());
  }
  std::uint32_t Append(PatternProgram::Instruction instruction) {
    instructions_.push_back(instruction);
    return next() - 1;
  }

  void Emit(const Node& node) {
    if (++visited_; IsFull()) return;
    switch (node.kind) {
      case Node::Kind::kSequence:
        for (const std::uint32_t part : node.parts) Emit(nodes_[part]);
        break;
      case Node::Kind::kChoice: Choice(node); break;
      case Node::Kind::kRepetition: Repetition(node); break;
      case Node::Kind::kCharacter: Append({Step::kCharacter, node.set}); break;
      case Node::Kind::kAssertion: Append({node.assertion}); break;
    }
  }

  void Choice(const Node& node) {
    std::vector<std::uint32_t> ends;
    for (std::size_t i = 0; i + 1 < node.parts.size() && !IsFull(); ++i) {
      const std::uint32_t split = Append({Step::kSplit, next() + 1});
      Emit(nodes_[node.parts[i]]);
      ends.push_back(Append({Step::kSplit}));
      instructions_[split].second = next();
    }
    Emit(nodes_[node.parts.back()]);
    for (const std::uint32_t end : ends)
      instructions_[end].first = instructions_[end].second = next();
  }

  void Repetition(const Node& node) {
    const Node& part = nodes_[node.parts[0]];
    for (std::uint32_t i = 0; i < node.least && !IsFull(); ++i) Emit(part);
    if (node.most == kNoLimit) {
      const std::uint32_t split = Append({Step::kSplit, next() + 1});
      Emit(part);
      Append({Step::kSplit, split, split});
      instructions_[split].second = next();
      return;
    }
    std::vector<std::uint32_t> splits;
    for (std::uint32_t i = node.least; i < node.most && !IsFull(); ++i) {
      splits.push_back(Append({Step::kSplit, next() + 1}));
      Emit(part);
    }
    for (const std::uint32_t split : splits) instructions_[split].second = next();
  }

  const std::vector<Node>& nodes_;
  std::vector<PatternProgram::Instruction>& instructions_;
  std::size_t visited_ = 0;
};

}  // namespace

bool CharacterSet::Has(char32_t character) const {
  const bool is_there = std::ranges::any_of(ranges, [character](const auto& range) {
    return range.first <= character && character <= range.second;
  });
  return is_there != is_inverse;
}

bool IsWord(char32_t character) {
  static const CharacterSet words = *NamedSet('w');
  return words.Has(character);
}

char32_t TakeCharacter(std::string_view& text) {
  constexpr std::array<unsigned char, 5> kFirstBits = {0, 0x7F, 0x1F, 0x0F, 0x07};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0xC2 || first > 0xF4 ? 1
                             : first < 0xE0               ? 2
                             : first < 0xF0               ? 3
                                                          : 4;
  char32_t character = length == 1 ? first : first & kFirstBits[length];
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size() || (byte(i) & 0xC0) != 0x80) {
      text.remove_prefix(1);
      return first;
    }
    character = character << 6 | (byte(i) & 0x3Fu);
  }
  text.remove_prefix(length);
  return character;
}

absl::StatusOr<PatternProgram> PatternProgram::Of(std::string_view text) {
  if (text.size() > kMaxPatternBytes) return absl::InvalidArgumentError("it is too long");
  PatternProgram program;
  Parser parser(text, program.sets);
  const std::uint32_t root = parser.Run();
  if (parser.problem != nullptr) return absl::InvalidArgumentError(parser.problem);
  if (!Assembler(parser.nodes, program.instructions).Run(root))
    return absl::InvalidArgumentError("it has too many repetitions");
  return program;
}

}  // namespace strobe::internal
