// How the command prints amounts, shares and names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "../../encode/amount_text.h"  // IWYU pragma: export
#include "terminal.h"

namespace strobe::internal {

// MeanText of a change, with a sign, and of its error if that is a number.
std::string ChangeText(double change, double error, std::string_view unit);
// "12.3 %", or "12.3 % ± 0.4" if `error`, of the share, is a number.
std::string ShareText(double share, double error);
// The columns of an amount, and of a share without its error, in a table.
inline constexpr std::size_t kAmountColumns = 12;
inline constexpr std::size_t kShareColumns = 9;
// `text` with spaces before it, or behind it, up to `columns` characters.
std::string Right(std::string_view text, std::size_t columns);
std::string Left(std::string_view text, std::size_t columns);
// The begin of `text`, in so many columns, with an ellipsis where something is left out; all of it
// for 0.
std::string CutTo(std::string_view text, std::size_t columns);

// Colours on a terminal, and names that fit its width.
class Printer {
 public:
  explicit Printer(const Terminal& terminal) : terminal_(terminal) {}

  [[nodiscard]] std::string Bold(std::string_view text) const { return In("1", text); }
  [[nodiscard]] std::string Dim(std::string_view text) const { return In("2", text); }
  [[nodiscard]] std::string Red(std::string_view text) const { return In("31", text); }
  [[nodiscard]] std::string Blue(std::string_view text) const { return In("34", text); }
  // `text`, cut to what `used` columns leave of the line.
  [[nodiscard]] std::string Cut(std::string_view text, std::size_t used) const;

 private:
  [[nodiscard]] std::string In(std::string_view code, std::string_view text) const;

  Terminal terminal_;
};

}  // namespace strobe::internal
