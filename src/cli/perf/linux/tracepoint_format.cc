#include "tracepoint_format.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kMostRawBytes = 1 << 16;  // a record's size has 16 bits
constexpr std::uint32_t kMostNumberBytes = 8;

// A line as "\tfield:unsigned int flags;\toffset:8;\tsize:4;\tsigned:0;".
struct FormatLine {
  std::string_view type;
  std::string_view name;
  TracepointField field;

  [[nodiscard]] bool is_number() const {
    constexpr auto kNone = std::string_view::npos;
    return type.find_first_of("*[") == kNone && name.find('[') == kNone &&
           type.find("_loc") == kNone && std::has_single_bit(field.bytes) &&
           field.bytes <= kMostNumberBytes;
  }
  // All fields of all tracepoints begin with these.
  [[nodiscard]] bool is_common() const { return name.starts_with("common_"); }
};

// The text between `key` and the next semicolon.
std::optional<std::string_view> TextBehind(std::string_view line, std::string_view key) {
  const std::size_t begin = line.find(key);
  if (begin == std::string_view::npos) return std::nullopt;
  line.remove_prefix(begin + key.size());
  const std::size_t end = line.find(';');
  if (end == std::string_view::npos) return std::nullopt;
  return line.substr(0, end);
}

std::optional<std::uint32_t> NumberOf(std::string_view line, std::string_view key) {
  const std::optional<std::string_view> text = TextBehind(line, key);
  std::uint32_t number = 0;
  if (!text || !absl::SimpleAtoi(absl::string_view(text->data(), text->size()), &number))
    return std::nullopt;
  return number;
}

std::optional<FormatLine> ParseLine(std::string_view line) {
  const std::optional<std::string_view> declaration = TextBehind(line, "\tfield:");
  const std::optional<std::uint32_t> offset = NumberOf(line, "\toffset:");
  const std::optional<std::uint32_t> bytes = NumberOf(line, "\tsize:");
  const std::optional<std::uint32_t> is_signed = NumberOf(line, "\tsigned:");
  if (!declaration || !offset || !bytes || !is_signed) return std::nullopt;
  if (*offset > kMostRawBytes || *bytes > kMostRawBytes) return std::nullopt;
  const std::size_t space = declaration->rfind(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return FormatLine{.type = declaration->substr(0, space),
                    .name = declaration->substr(space + 1),
                    .field = {.offset = *offset, .bytes = *bytes, .is_signed = *is_signed != 0}};
}

}  // namespace

absl::StatusOr<TracepointField> ParseTracepointField(std::string_view format,
                                                     std::string_view name) {
  format = format.substr(0, kMaxFormatBytes);
  std::string numbers;
  for (const absl::string_view text :
       absl::StrSplit(absl::string_view(format.data(), format.size()), '\n')) {
    const std::optional<FormatLine> line = ParseLine({text.data(), text.size()});
    if (!line) continue;
    const bool is_wanted = line->name.substr(0, line->name.find('[')) == name;
    if (is_wanted && line->is_number()) return line->field;
    if (is_wanted)
      return absl::InvalidArgumentError(absl::StrCat(
          "the field ", std::string(name), " is no number, but ", std::string(line->type)));
    if (line->is_number() && !line->is_common())
      absl::StrAppend(&numbers, numbers.empty() ? "" : ", ", std::string(line->name));
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no field ", std::string(name),
                                                 numbers.empty() ? "" : ": expected ", numbers));
}

}  // namespace strobe::internal
