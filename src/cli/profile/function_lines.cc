#include "function_lines.h"

#include <utility>

#include "../../encode/row_texts.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/profile_view.h"

namespace strobe::internal {
namespace {

// Longer names are cut.
constexpr std::size_t kMaxNameBytes = 4096;

}  // namespace

std::uint32_t FunctionLines::Number(std::string name, const std::string& file) {
  name = SanitizedText(name, kMaxNameBytes);
  const auto next = static_cast<std::uint32_t>(functions_.size());
  const auto [place, is_new] = numbers_.try_emplace(name, next);
  if (is_new) functions_.push_back({std::move(name), {}});
  std::string& known = functions_[place->second].file;
  if (known.empty()) known = SanitizedText(file, kMaxNameBytes);
  return place->second;
}

absl::StatusOr<FunctionLines> FunctionLines::Make(const LoadedProfile& loaded, bool full_names) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(loaded.profile, loaded.symbols);
  if (!view.ok()) return view.status();
  const std::vector<std::string> short_names =
      full_names ? std::vector<std::string>() : ShortNames(*view);
  FunctionLines result;
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < view->function_count(); ++i) {
    const FunctionName function = view->function(i);
    numbers.push_back(result.Number(full_names ? std::string(function.name) : short_names[i],
                                    std::string(function.file)));
  }
  for (std::uint32_t frame = 0; frame < loaded.profile.frames.size(); ++frame) {
    result.begins_.push_back(result.lines_.size());
    view->VisitLines(frame, [&](const SourceLine& line) {
      result.lines_.push_back({numbers[line.function], line.line});
    });
    if (result.lines_.size() == result.begins_.back())
      result.lines_.push_back({result.Number(view->FrameText(frame), ""), 0});
  }
  result.begins_.push_back(result.lines_.size());
  return result;
}

}  // namespace strobe::internal
