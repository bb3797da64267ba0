#include "text.h"

#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strobe::internal {
namespace {

// Characters of UTF-8, taken for one column each.
std::size_t Characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

}  // namespace

std::string ChangeText(double change, double error, std::string_view unit) {
  std::string text = absl::StrCat(change > 0 ? "+" : "", MeanText(change, unit));
  if (!std::isnan(error)) absl::StrAppend(&text, " \u00B1 ", MeanText(error, unit));
  return text;
}

std::string ShareText(double share, double error) {
  if (std::isnan(error)) return absl::StrFormat("%.1f %%", 100 * share);
  return absl::StrFormat("%.1f %% \u00B1 %.1f", 100 * share, 100 * error);
}

std::string Right(std::string_view text, std::size_t columns) {
  const std::size_t used = Characters(text);
  return std::string(used < columns ? columns - used : 0, ' ').append(text);
}

std::string Left(std::string_view text, std::size_t columns) {
  const std::size_t used = Characters(text);
  return std::string(text).append(used < columns ? columns - used : 0, ' ');
}

std::string CutTo(std::string_view text, std::size_t columns) {
  if (columns == 0 || Characters(text) <= columns) return std::string(text);
  std::size_t bytes = 0;
  for (std::size_t characters = 0; bytes < text.size(); ++bytes) {
    characters += (static_cast<unsigned char>(text[bytes]) & 0xC0) != 0x80 ? 1 : 0;
    if (characters == columns) break;
  }
  return std::string(text.substr(0, bytes)).append("\u2026");
}

std::string Printer::In(std::string_view code, std::string_view text) const {
  if (!terminal_.shows_output) return std::string(text);
  std::string result = "\033[";
  return result.append(code).append("m").append(text).append("\033[0m");
}

std::string Printer::Cut(std::string_view text, std::size_t used) const {
  constexpr std::size_t kMinColumns = 20;
  if (terminal_.columns <= 0) return std::string(text);
  const auto width = static_cast<std::size_t>(terminal_.columns);
  const std::size_t room = width > used + kMinColumns ? width - used : kMinColumns;
  return CutTo(text, room);
}

}  // namespace strobe::internal
