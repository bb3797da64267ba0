// PatternProgram: a regular expression as a small machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace strobe::internal {

inline constexpr std::size_t kMaxPatternBytes = 1000;
// Groups in groups.
inline constexpr int kMaxPatternDepth = 100;
// "(a{100}){100}" has a hundred times a hundred.
inline constexpr std::size_t kMaxInstructions = 4000;

// Characters, as ranges of code points from the first to the last.
struct CharacterSet {
  std::vector<std::pair<char32_t, char32_t>> ranges;
  bool is_inverse = false;

  [[nodiscard]] bool Has(char32_t character) const;
};

struct PatternProgram {
  enum class Step : std::uint8_t {
    kCharacter,   // takes one of set `first`
    kSplit,       // goes on at `first` and at `second`
    kBegin,       // goes on at the begin of the text
    kEnd,         // at its end
    kWordEdge,    // between a word and what is none
    kNoWordEdge,  // elsewhere
    kFound,
  };
  struct Instruction {
    Step step;
    std::uint32_t first = 0;
    std::uint32_t second = 0;
  };

  std::vector<Instruction> instructions;
  std::vector<CharacterSet> sets;

  // Of a text of ECMAScript: characters, ".", classes, "^", "$", "\b", groups, "|", "*", "+", "?",
  // "{2,5}". Lazy repetitions find the same. InvalidArgument says what is wrong: for references
  // back and for looking ahead, too, which no such machine has, and beyond the limits above.
  static absl::StatusOr<PatternProgram> Of(std::string_view text);
};

// Whether the character is one of "\w".
bool IsWord(char32_t character);
// Takes the first character off `text`. A byte that is not UTF-8 stands for itself.
char32_t TakeCharacter(std::string_view& text);

}  // namespace strobe::internal
