#include "row_texts.h"

#include <cstddef>
#include <map>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/short_name.h"

namespace strobe::internal {

std::vector<std::string> ShortNames(const ProfileView& view) {
  std::vector<std::string> names;
  names.reserve(view.function_count());
  for (std::size_t i = 0; i < view.function_count(); ++i)
    names.push_back(ValidUtf8(ShortFunctionName(view.function(i).name)));
  return names;
}

std::string ThreadText(std::int64_t id, std::string_view name) {
  return name.empty() ? absl::StrCat("thread ", static_cast<std::uint64_t>(id)) : std::string(name);
}

bool IsThreadLabel(const Label& label) {
  return label.key == kThreadIdLabel || label.key == kThreadNameLabel;
}

std::string ValueText(const Label& label) {
  const auto* const number = std::get_if<std::int64_t>(&label.value);
  return number != nullptr ? absl::StrCat(*number) : std::get<std::string>(label.value);
}

std::vector<std::string> LabelTexts(const LabelSet& set) {
  std::vector<std::string> texts;
  for (const Label& label : set.labels()) {
    if (!IsThreadLabel(label)) texts.push_back(absl::StrCat(label.key, "=", ValueText(label)));
  }
  return texts;
}

absl::StatusOr<std::size_t> FindColumn(const Profile& profile, std::string_view type,
                                       std::size_t preferred) {
  if (type.empty()) return preferred;
  for (std::size_t i = 0; i < profile.value_types.size(); ++i) {
    if (profile.value_types[i].type == type) return i;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the profile has no value type ", std::string(type)));
}

std::vector<ThreadParts> PartsByThread(const Profile& profile, const SampleParts& parts) {
  std::vector<ThreadParts> threads;
  std::map<std::pair<std::int64_t, std::string>, std::size_t> numbers;
  const auto number = [&](std::int64_t id, const std::string& name) {
    const auto [place, is_new] = numbers.try_emplace({id, name}, threads.size());
    if (is_new) threads.push_back({.id = id, .name = name, .lives = {}, .parts = {}});
    return place->second;
  };
  for (const ProfileThread& thread : profile.threads)
    threads[number(static_cast<std::int64_t>(thread.id), thread.name)].lives.push_back(&thread);
  std::vector<std::size_t> thread_of;  // of each label set
  thread_of.reserve(profile.label_sets.size());
  for (const LabelSet& set : profile.label_sets)
    thread_of.push_back(number(set.Number(kThreadIdLabel), set.Text(kThreadNameLabel)));
  for (const SamplePart& part : parts.parts())
    threads[thread_of[profile.samples[part.sample].labels]].parts.push_back(part);
  return threads;
}

}  // namespace strobe::internal
