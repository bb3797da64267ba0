#include "strobe/encode/svg_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "../amount_text.h"
#include "../html/markup_text.h"
#include "../row_texts.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "flame_boxes.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/profile_view.h"
#include "svg_colors.h"

namespace strobe {
namespace {

using internal::AppendMarkupText;
using internal::FlameBox;
using internal::FlameBoxes;

constexpr int kMarginPx = 10;
constexpr int kHeadPx = 70;  // above the boxes
constexpr int kRowPx = 18;   // a pixel of it stays free
constexpr int kTextPx = 13;  // from a box's top to its text's base
constexpr int kPadPx = 3;    // between a box's side and its text
// Of a character of most fonts of one width, in the size of the picture's texts.
constexpr double kCharacterPx = 6.7;
constexpr std::size_t kLeastCharacters = 3;
constexpr std::size_t kMaxMarks = 4;
constexpr std::size_t kMaxHeadNameBytes = 100;
constexpr std::string_view kEllipsis = "\u2026";

std::int64_t Whole(double amount) {
  constexpr double kMost = 9e18;
  return static_cast<std::int64_t>(std::min(amount, kMost));
}

// The begin of `text` that is surely not wider. A byte counts as a character: so wide characters,
// which have three bytes, have room.
std::string CutToWidth(std::string_view text, double width_px) {
  const double room = (width_px - 2 * kPadPx) / kCharacterPx;
  if (room < static_cast<double>(kLeastCharacters)) return "";
  const auto bytes = static_cast<std::size_t>(room);
  if (text.size() <= bytes) return std::string(text);
  return absl::StrCat(SanitizedText(text, bytes - 1), std::string(kEllipsis));
}

class Picture {
 public:
  Picture(const Profile& profile, const ValueType& type, const FlameBoxes& boxes)
      : profile_(profile), type_(type), boxes_(boxes) {}

  std::string Draw() {
    const auto height =
        kHeadPx + kRowPx * static_cast<std::int64_t>(boxes_.levels() + 1) + kMarginPx;
    const int width = SvgEncoder::kWidthPx + 2 * kMarginPx;
    absl::StrAppendFormat(
        &svg_,
        R"(<svg xmlns="http://www.w3.org/2000/svg" width="%1$d" height="%2$d" )"
        R"(viewBox="0 0 %1$d %2$d" font-family="Menlo,Consolas,'DejaVu Sans Mono',monospace" )"
        R"(font-size="11">)",
        width, height);
    svg_ += "\n<title>";
    AppendMarkupText(svg_, Title());
    svg_ += "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    DrawHead();
    const std::string all = absl::StrCat("all: ", AmountOf(boxes_.total()));
    DrawBox(0, 0, boxes_.total(), internal::kPlainFill, all, all);
    for (const FlameBox& box : boxes_.boxes()) Draw(box);
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  [[nodiscard]] std::string AmountOf(double amount) const {
    return internal::AmountText(Whole(amount), type_.unit);
  }
  [[nodiscard]] std::string ShareOf(double amount) const {
    return absl::StrFormat("%.1f %%", boxes_.total() > 0 ? 100 * amount / boxes_.total() : 0.0);
  }

  [[nodiscard]] std::string Title() const {
    std::string title = SanitizedText(profile_.program, kMaxHeadNameBytes);
    if (title.empty()) title = "profile";
    if (boxes_.total() <= 0) return title + ": no samples";
    return absl::StrCat(title, ": ", std::string(type_.type), ", ", AmountOf(boxes_.total()));
  }

  // What is wide enough to be drawn, and what is not code.
  [[nodiscard]] std::string Account() const {
    std::string account;
    if (profile_.process_id != 0) absl::StrAppend(&account, "process ", profile_.process_id, ", ");
    absl::StrAppend(&account, internal::AmountText(profile_.duration_ns, "nanoseconds"), " long");
    double hidden = 0;
    std::size_t functions = 0;
    for (const FlameBox& box : boxes_.boxes()) {
      if (box.function != FlameBox::kNoFunction) continue;
      hidden += box.amount;
      functions += box.functions;
    }
    if (functions != 0)
      absl::StrAppend(&account, "; too narrow to be drawn: ", functions, ", ", ShareOf(hidden));
    return account;
  }

  [[nodiscard]] std::string Marks() const {
    std::string text;
    for (std::size_t i = 0; i < std::min(boxes_.marks().size(), kMaxMarks); ++i) {
      const auto& [name, amount] = boxes_.marks()[i];
      absl::StrAppend(&text, text.empty() ? "not code: " : ", ",
                      SanitizedText(name, kMaxHeadNameBytes / 2), " ", ShareOf(amount));
    }
    return text;
  }

  void DrawHead() {
    DrawLine(22, R"(font-size="16" font-weight="bold")", Title());
    DrawLine(40, R"(fill="#57534e")", Account());
    DrawLine(56, R"(fill="#57534e")", Marks());
  }

  void DrawLine(int y, std::string_view attributes, std::string_view text) {
    absl::StrAppendFormat(&svg_, R"(<text x="%d" y="%d" %s>)", kMarginPx, y, attributes);
    AppendMarkupText(svg_, text);
    svg_ += "</text>\n";
  }

  void Draw(const FlameBox& box) {
    const std::string amount = absl::StrCat(AmountOf(box.amount), ", ", ShareOf(box.amount));
    if (box.function == FlameBox::kNoFunction) {
      DrawBox(box.level + 1, box.begin, box.amount, internal::kRestFill, "",
              absl::StrCat(box.functions, " too narrow to be drawn: ", amount));
      return;
    }
    const internal::PageFunction& function = boxes_.function(box);
    const std::string_view name = boxes_.Text(function.short_name);
    const std::string_view fill =
        function.is_pseudo
            ? internal::kPlainFill
            : internal::FillOfCode(function.module, boxes_.Text(function.name), box.is_inlined);
    std::string tooltip = SanitizedText(boxes_.Text(function.name), SvgEncoder::kMaxNameBytes);
    if (const std::string_view module = boxes_.ModulePath(function); !module.empty())
      absl::StrAppend(&tooltip, " (", SanitizedText(module, SvgEncoder::kMaxNameBytes), ")");
    absl::StrAppend(&tooltip, box.is_inlined ? ", inlined: " : ": ", amount);
    if (box.self > 0) absl::StrAppend(&tooltip, "; in itself ", AmountOf(box.self));
    DrawBox(box.level + 1, box.begin, box.amount, fill, name, tooltip);
  }

  // Sides are rounded, not widths: so widths add up.
  [[nodiscard]] std::int64_t SideOf(double amount) const {
    return boxes_.total() > 0 ? std::llround(amount / boxes_.total() * SvgEncoder::kWidthPx * 100)
                              : 0;
  }

  void DrawBox(std::size_t row, double begin, double amount, std::string_view fill,
               std::string_view name, std::string_view tooltip) {
    const std::int64_t left = SideOf(begin), width = SideOf(begin + amount) - left;
    if (width == 0) return;
    const double x = kMarginPx + static_cast<double>(left) / 100;
    const double width_px = static_cast<double>(width) / 100;
    const auto y = kHeadPx + kRowPx * static_cast<std::int64_t>(row);
    svg_ += "<g><title>";
    AppendMarkupText(svg_, tooltip);
    absl::StrAppendFormat(&svg_,
                          R"(</title><rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>)",
                          x, y, width_px, kRowPx - 1, fill);
    if (const std::string text = CutToWidth(name, width_px); !text.empty()) {
      absl::StrAppendFormat(&svg_, R"(<text x="%.2f" y="%d">)", x + kPadPx, y + kTextPx);
      AppendMarkupText(svg_, text);
      svg_ += "</text>";
    }
    svg_ += "</g>\n";
  }

  const Profile& profile_;
  const ValueType type_;
  const FlameBoxes& boxes_;
  std::string svg_;
};

}  // namespace

SvgEncoder::SvgEncoder(SvgOptions options) : options_(std::move(options)) {}

absl::StatusOr<std::string> SvgEncoder::Encode(const Profile& profile, const Symbols& symbols) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
  if (!view.ok()) return view.status();
  const absl::StatusOr<std::size_t> column =
      internal::FindColumn(profile, options_.value_type, profile.default_value_type);
  if (!column.ok()) return column.status();
  const FlameBoxes::Limits limits{
      .least_share = kLeastWidthPx / kWidthPx, .max_boxes = kMaxBoxes, .max_levels = kMaxLevels};
  const absl::StatusOr<FlameBoxes> boxes = FlameBoxes::Make(*view, *column, limits);
  if (!boxes.ok()) return boxes.status();
  const ValueType type =
      *column < profile.value_types.size() ? profile.value_types[*column] : ValueType{};
  return Picture(profile, type, *boxes).Draw();
}

}  // namespace strobe
