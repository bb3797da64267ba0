#include "pattern.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

using Step = PatternProgram::Step;

// Where the ways through a program are, between two characters of a name.
class Places {
 public:
  explicit Places(const PatternProgram& program)

      : program_(&program), is_there_(program.instructions.size()) {}

  void Clear() {
    for (const std::uint32_t place : waiting_) is_there_[place] = false;
    for (const std::uint32_t place : passed_) is_there_[place] = false;
    waiting_.clear();
    passed_.clear();
  }
  // Those that wait for a character.
  [[nodiscard]] const std::vector<std::uint32_t>& waiting() const { return waiting_; }

  struct Edges {
    bool is_begin;
    bool is_end;
    bool is_word_edge;
  };
  // Goes from `place` as far as no character is needed. True if the end of the program is there.
  bool Go(std::uint32_t place, const Edges& edges) {
    todo_.assign(1, place);
    while (!todo_.empty()) {
      const std::uint32_t at = todo_.back();
      todo_.pop_back();
      if (is_there_[at]) continue;
      is_there_[at] = true;
      const PatternProgram::Instruction& instruction = program_->instructions[at];
      if (instruction.step == Step::kFound) return true;
      (instruction.step == Step::kCharacter ? waiting_ : passed_).push_back(at);
      if (instruction.step == Step::kSplit) {
        todo_.push_back(instruction.second);
        todo_.push_back(instruction.first);
      } else if (Holds(instruction.step, edges)) {
        todo_.push_back(at + 1);
      }
    }
    return false;
  }

 private:
  static bool Holds(Step step, const Edges& edges) {
    switch (step) {
      case Step::kBegin: return edges.is_begin;
      case Step::kEnd: return edges.is_end;
      case Step::kWordEdge: return edges.is_word_edge;
      case Step::kNoWordEdge: return !edges.is_word_edge;
      default: return false;
    }
  }

  const PatternProgram* program_;
  std::vector<bool> is_there_;
  std::vector<std::uint32_t> waiting_, passed_, todo_;
};

}  // namespace

absl::StatusOr<Pattern> Pattern::Parse(const std::string& text) {
  absl::StatusOr<PatternProgram> program = PatternProgram::Of(text);
  if (program.ok()) return Pattern(*std::move(program));
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is no regular expression: ", program.status().message()));
}

bool Pattern::Matches(std::string_view name) const {
  Places now(program_);
  Places next(program_);
  std::string_view rest = name;
  bool is_in_word = false;
  char32_t character = 0;  // the one before `rest`
  while (true) {
    std::string_view behind = rest;
    const char32_t following = rest.empty() ? 0 : TakeCharacter(behind);
    const bool is_word = !rest.empty() && IsWord(following);
    const Places::Edges edges{.is_begin = rest.size() == name.size(),
                              .is_end = rest.empty(),
                              .is_word_edge = is_word != is_in_word};
    next.Clear();
    for (const std::uint32_t place : now.waiting()) {
      if (program_.sets[program_.instructions[place].first].Has(character) &&
          next.Go(place + 1, edges))
        return true;
    }
    if (next.Go(0, edges)) return true;  // a match may begin anywhere
    if (rest.empty()) return false;
    std::swap(now, next);
    character = following;
    is_in_word = is_word;
    rest = behind;
  }
}

}  // namespace strobe::internal
