#include "strobe/encode/folded_encoder.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "row_texts.h"
#include "strobe/core/label_set.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/profile_view.h"

namespace strobe {
namespace {

// A text that cannot be taken for more than one frame.
std::string FrameOf(std::string text) {
  for (char& c : text) {
    if (c == ';') c = ':';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return ValidUtf8(text);
}

// Of each frame: its functions from the outermost to the innermost, each with a ';' behind it.
std::vector<std::string> FrameTexts(const ProfileView& view) {
  std::vector<std::string> names = internal::ShortNames(view);
  for (std::string& name : names) name = FrameOf(std::move(name)) + ";";
  std::vector<std::string> texts(view.profile().frames.size());
  for (std::uint32_t i = 0; i < texts.size(); ++i) {
    view.VisitLines(i, [&](const SourceLine& line) { texts[i].insert(0, names[line.function]); });
    if (texts[i].empty()) texts[i] = FrameOf(view.FrameText(i)) + ";";
  }
  return texts;
}

// What stands before the stack, with a ';' behind each part.
std::string RootText(const LabelSet& set, const FoldedOptions& options) {
  std::string root;
  if (options.threads) {
    root = FrameOf(internal::ThreadText(set.Number(kThreadIdLabel), set.Text(kThreadNameLabel)));
    // The Firefox Profiler takes a file that begins with a brace for JSON.
    if (root.starts_with('{')) root[0] = '(';
    root += ';';
  }
  if (options.labels) {
    for (const std::string& label : internal::LabelTexts(set))
      absl::StrAppend(&root, "[", FrameOf(label), "];");
  }
  return root;
}

std::size_t PreferredColumn(const Profile& profile) {
  const auto count = std::ranges::find(profile.value_types, "count", &ValueType::unit);
  return count == profile.value_types.end()
             ? profile.default_value_type
             : static_cast<std::size_t>(count - profile.value_types.begin());
}

}  // namespace

FoldedEncoder::FoldedEncoder(FoldedOptions options) : options_(std::move(options)) {}

absl::StatusOr<std::string> FoldedEncoder::Encode(const Profile& profile, const Symbols& symbols) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
  if (!view.ok()) return view.status();
  const absl::StatusOr<std::size_t> column =
      internal::FindColumn(profile, options_.value_type, PreferredColumn(profile));
  if (!column.ok()) return column.status();
  const std::vector<std::string> frame_texts = FrameTexts(*view);
  std::vector<std::string> roots;
  for (const LabelSet& set : profile.label_sets) roots.push_back(RootText(set, options_));
  std::string text;
  std::vector<std::uint32_t> frames;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t value = profile.value_types.empty() ? 0 : profile.Values(i)[*column];
    if (value == 0) continue;
    frames.clear();
    view->VisitStack(i, [&frames](std::uint32_t frame) { frames.push_back(frame); });
    text += roots[profile.samples[i].labels];
    if (frames.empty()) text += "[no stack];";
    std::reverse(frames.begin(), frames.end());
    for (const std::uint32_t frame : frames) {
      text += frame_texts[frame];
      if (text.size() > kMaxBytes)
        return absl::OutOfRangeError("the profile is too long for folded stacks");
    }
    text.pop_back();
    absl::StrAppend(&text, " ", value, "\n");
  }
  if (text.empty()) text = "[no samples] 0\n";
  return text;
}

}  // namespace strobe
